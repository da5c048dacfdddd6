import assert from 'node:assert/strict';
import { accessTemplate, targetOf } from '../../support/access-manifests.ts';
import { conditionOf, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage, administrator } from '../../support/access-stage.ts';

const container = { name: 'shell', image: 'busybox:1.37', command: ['sleep', 'infinity'] };
const podSpec = { containers: [container] };
const privileged = { containers: [{ ...container, securityContext: { privileged: true } }] };

describe('kubectl apply of a template', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const template = (name: string, spec: object, accessConfig: object = {}): Manifest =>
    accessTemplate('PodAccessTemplate', name, spec, accessConfig);
  const patch = (...patchSpecOperations: object[]) => ({ controllerTargetMutationConfig: { patchSpecOperations } });
  /** What kubectl prints, and its exit code. */
  const printed = async (verb: string, manifest: Manifest, ...flags: string[]) => {
    const input = JSON.stringify(manifest);
    const { code, stdout, stderr } = await stage.plane.kubectl([verb, '-n', stage.namespace, '-f', '-', ...flags], {
      input,
      reject: false,
    });
    return { code, stdout, stderr };
  };
  const apply = (manifest: Manifest) => printed('apply', manifest);
  const replace = (manifest: Manifest, ...flags: string[]) => printed('replace', manifest, ...flags);

  const refused: [title: string, manifest: Manifest, message: RegExp][] = [
    [
      'a privileged pod without the flag',
      template('privileged', { podSpec: privileged }),
      /PodReachesTooFar: spec\.containers\[0\]\.securityContext\.privileged of the access pod is set/,
    ],
    [
      'a patch path that its own podSpec does not have',
      template('path', { podSpec, ...patch({ op: 'remove', path: '/spec/containers/1' }) }),
      /InvalidTemplate: .*patchSpecOperations\[0\] .*there is nothing at "\/spec\/containers\/1"; "\/spec\/containers" is a list of 1: write the index 0$/m,
    ],
    [
      'a null in its patch, which kubectl apply drops',
      template('null', { podSpec, ...patch({ op: 'add', path: '/spec/priorityClassName', value: null }) }),
      /InvalidTemplate: .*: add needs a value; .* kubectl apply --server-side if it is null/,
    ],
    [
      'a trailing space in a group',
      template('space', { podSpec }, { allowedGroups: ['devs '] }),
      /InvalidGroup: spec\.accessConfig\.allowedGroups\[0\] is "devs "; .*write "devs"/,
    ],
  ];
  for (const [title, manifest, message] of refused) {
    it(`is refused with ${title}`, async () => {
      const { code, stderr } = await apply(manifest);
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    });
  }

  it('names every mistake of a template in a dry run, and what to correct', async () => {
    const mistakes = {
      allowedGroups: ['devs ', 'system:authenticated'],
      rules: [{ apiGroups: ['*'], resources: ['pods/log'], verbs: ['*'] }],
      exec: false,
      reason: { pattern: '^(?!x)INC' },
      start: { windows: [{ days: ['Mon'], from: '08:00', to: '18:00', timeZone: 'CEST' }] },
    };
    const manifest = template(
      'mistakes',
      { ...targetOf('payments'), ...patch({ op: 'replace', path: '/spec/x' }) },
      mistakes,
    );
    const args = ['create', '-n', stage.namespace, '--dry-run=server', '-f', '-'];
    const { code, stderr } = await stage.plane.kubectl(args, { input: JSON.stringify(manifest), reject: false });
    assert.notEqual(code, 0);
    const printed = stderr.split('\n').filter((line) => line.startsWith('Warning: '));
    assert.deepEqual(
      printed.map((line) => line.replace('Warning: ', '').replace(/: .*?; to (pass|check):/, ' …')),
      [
        'FAIL groups … correct the groups: spec.accessConfig.allowedGroups has "system:authenticated"; Kubernetes reserves groups that begin with system:, for example for all authenticated users; name the groups of the people who may request access',
        'FAIL group-names … remove the spaces around the name in spec.accessConfig.allowedGroups[0]',
        'FAIL reason-pattern … write, for example, ^(INC|CHG)-[0-9]+',
        'FAIL windows … write IANA names, such as Europe/Berlin',
        'FAIL patch … correct spec.controllerTargetMutationConfig.patchSpecOperations[0].value',
        'FAIL rules … correct spec.accessConfig.rules[0].apiGroups',
        'FAIL access-command … correct the command: accessCommand is kubectl exec, the default, and exec is false; write what the rules allow, such as kubectl logs -f -n {{ .Metadata.Namespace }} {{ .Metadata.Name }}',
        'not checked grantable: whether what allow and rules add is grantable in this installation',
        'not checked author … correct what fails, and check again',
        'not checked plan … correct what fails, and check again',
        'not checked api-server … store the template, because a dry run does not ask the API server; if the API server rejects the Pod or the Role of a grant, the condition AccessPlanValid of the template is False',
        '9 rules passed',
      ],
    );
  });

  it('prints the same warning about a stored template that it does not change, also in a dry run', async () => {
    const missing = template('missing', targetOf('later'));
    assert.equal((await apply(missing)).code, 0);
    await stage.templateReady('PodAccessTemplate', 'missing', false);
    const stored = await replace(missing);
    assert.equal(stored.code, 0, stored.stderr);
    assert.match(stored.stderr, /^Warning: TargetNotFound: Deployment "later" does not exist /m);
    const tried = await replace(missing, '--dry-run=server');
    assert.equal(tried.code, 0, tried.stderr);
    assert.match(tried.stderr, /^Warning: FAIL plan: TargetNotFound: Deployment "later" does not exist /m);
    assert.doesNotMatch(tried.stderr, /author/);
  });

  it('is unchanged the second time, also with approvals', async () => {
    const approved = template('approved', targetOf('payments'), { approvals: { all: [{ name: 'peer' }] } });
    const outputs = [(await apply(approved)).stdout.trim(), (await apply(approved)).stdout.trim()];
    const name = 'podaccesstemplate.crds.wizardofoz.co/approved';
    assert.deepEqual(outputs, [`${name} created`, `${name} unchanged`]);
    assert.equal((await stage.templateReady('PodAccessTemplate', 'approved')).status?.ready, true);
  });

  it('warns about an ExecAccessTemplate whose command names a label that the Pods lack, and is not ready', async () => {
    const accessCommand = 'kubectl exec {{ .Metadata.Name }} -- echo {{ index .Metadata.Labels "app2" }}';
    const unlabelled = {
      ...template('unlabelled', targetOf('payments'), { accessCommand }),
      kind: 'ExecAccessTemplate',
    };
    const { code, stderr } = await apply(unlabelled);
    assert.equal(code, 0, stderr);
    const text =
      /label "app2", which the Pod template of Deployment payments does not have; add the label to the Pod template of Deployment payments, or remove/;
    assert.match(stderr, /^Warning: InvalidAccessCommand: /m);
    assert.match(stderr, text);
    const judged = await stage.templateReady('ExecAccessTemplate', 'unlabelled', false);
    const { reason, message = '' } = conditionOf(judged, 'AccessPlanValid') ?? {};
    assert.equal(reason, 'InvalidAccessCommand');
    assert.match(message, text);
  });

  it('changes a template that was stored without the webhooks, but adds no violation', async () => {
    await stage.removeWebhooksOnly();
    const stored = template('stored', { podSpec: privileged }, { allowedGroups: ['devs', 'sre '] });
    const author = administrator();
    assert.equal((await apply({ ...stored, spec: { ...(stored['spec'] as object), author } })).code, 0);
    await stage.restoreWebhooks();
    const edited = { ...stored, spec: { ...(stored['spec'] as object), maxCpu: '1' } } as Manifest;
    const kept = await apply(edited);
    assert.equal(kept.code, 0, kept.stderr);
    assert.match(kept.stderr, /^Warning: InvalidGroup: spec\.accessConfig\.allowedGroups\[1\] is "sre "/m);
    const judged = await stage.templateReady('PodAccessTemplate', 'stored', false);
    assert.equal(conditionOf(judged, 'AccessPlanValid')?.reason, 'InvalidGroup');
    const wide = await stage.kubectl('get', 'podaccesstemplate', 'stored', '-o', 'wide');
    assert.match(wide, /^stored +false +InvalidGroup .* spec\.accessConfig\.allowedGroups\[1\] is "sre "/m);
    const request = await stage.createOk(stage.alice, podRequest('by-stored', { templateName: 'stored' }));
    const denied = await stage.requestUntil('to be denied', request, (now) =>
      (now.status?.conditions ?? []).some(({ reason }) => reason === 'PodReachesTooFar'),
    );
    assert.deepEqual(await stage.children(denied.metadata.uid), []);
    const worse = await apply(
      template('stored', { podSpec: privileged, maxCpu: '1' }, { accessCommand: 'kubectl logs' }),
    );
    assert.match(worse.stderr, /InvalidAccessCommand: /);
    const another = await apply(
      template('stored', { podSpec: privileged }, { allowedGroups: ['devs', 'sre ', ' qa'] }),
    );
    assert.match(another.stderr, /InvalidGroup: spec\.accessConfig\.allowedGroups\[2\] is " qa"/);
    const corrected = await apply(template('stored', { podSpec, maxCpu: '1' }));
    assert.deepEqual([corrected.code, corrected.stderr.includes('Warning')], [0, false]);
    const ready = await stage.templateReady('PodAccessTemplate', 'stored');
    assert.equal(conditionOf(ready, 'Ready')?.status, 'True');
  });
});

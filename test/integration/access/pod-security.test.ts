import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { accessTemplate, role, targetOf, workload } from '../../support/access-manifests.ts';
import { conditionOf, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';

type Operation = readonly [op: 'add' | 'replace', path: string, value: unknown];

const template = (name: string, spec: object): Manifest => accessTemplate('PodAccessTemplate', name, spec);

const patched = (name: string, operations: readonly Operation[], more: object = {}): Manifest =>
  template(name, {
    ...targetOf('payments'),
    controllerTargetMutationConfig: {
      patchSpecOperations: operations.map(([op, path, value]) => ({ op, path, value })),
    },
    ...more,
  });

/** The address at which clouds serve credentials to a node. */
const elsewhere = { host: '169.254.169.254', port: 80, path: '/latest/meta-data/' };

/** A Deployment without replicas: only its pod template matters. */
const agent = workload('agent', {
  replicas: 0,
  template: {
    metadata: { labels: { app: 'agent' } },
    spec: { hostPID: true, containers: [{ name: 'app', image: 'a:1' }] },
  },
});
const agentRef = targetOf('agent');

describe('the pod of an access template', () => {
  let stage: AccessStage;
  /** A user with all verbs on templates, by name, and with the permissions that templates grant, but not an administrator. */
  let erin: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    erin = await Person.of(stage.plane, 'erin', ['owners']);
    await stage.apply(
      agent,
      role(
        'owners',
        {
          apiGroups: ['crds.wizardofoz.co'],
          resources: ['podaccesstemplates'],
          verbs: ['get', 'list', 'create', 'update', 'patch', 'delete'],
        },
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create'] },
        { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
      ),
    );
    await stage.kubectl('create', 'rolebinding', 'owners', '--role=owners', '--group=owners');
  });

  after(() => stage?.close());

  const ask = async (templateName: string): Promise<StoredRequest> => {
    await stage.templateObserved('PodAccessTemplate', templateName);
    return stage.createOk(stage.alice, podRequest(`via-${templateName}`, { templateName, duration: '10m' }));
  };

  const specs: [string, Manifest, RegExp][] = [
    [
      'privileged',
      patched('privileged', [['add', '/spec/containers/0/securityContext', { privileged: true }]]),
      /privileged of the access pod is set/,
    ],
    [
      'able to send requests from the node by a probe',
      patched('probe', [['add', '/spec/containers/0/livenessProbe', { httpGet: elsewhere }]]),
      /livenessProbe\.httpGet\.host of the access pod is "169\.254\.169\.254"/,
    ],
    [
      'able to send requests from the node by a hook',
      patched('hook', [['add', '/spec/containers/0/lifecycle', { postStart: { httpGet: elsewhere } }]]),
      /lifecycle\.postStart\.httpGet\.host/,
    ],
    [
      'under another ServiceAccount',
      patched('account', [['add', '/spec/serviceAccountName', 'builder']]),
      /is "builder", not "default"/,
    ],
    ['on a chosen node', patched('node', [['add', '/spec/nodeName', 'node-0']]), /spec\.nodeName/],
    [
      'privileged by a copied container',
      patched('copied', [
        ['add', '/spec/initContainers', [{ name: 'i', image: 'a:1', securityContext: { privileged: true } }]],
      ]),
      /spec\.initContainers\[0\]\.securityContext\.privileged/,
    ],
    ['as privileged as its workload', template('after-agent', agentRef), /spec\.hostPID/],
  ];
  for (const [title, manifest, message] of specs) {
    it(`is never ${title}`, async () => {
      await stage.apply(manifest);
      const denied = await stage.requestUntil('to be denied', await ask(manifest.metadata.name ?? ''), (now) =>
        (now.status?.conditions ?? []).some(({ reason }) => reason === 'PodReachesTooFar'),
      );
      assert.match(conditionOf(denied, 'AccessResourcesCreated')?.message ?? '', message);
      assert.deepEqual(await stage.children(denied.metadata.uid), []);
    });
  }

  const create = (person: Pick<Person, 'call'>, manifest: Manifest) =>
    person.call('POST', stage.urlOf('PodAccessTemplate'), manifest);

  it('is never privileged by podSpec: such a template is not stored', async () => {
    const podSpec = { hostIPC: true, containers: [{ name: 'a', image: 'a:1' }] };
    const { status, body } = await create(stage.plane, template('written', { podSpec }));
    assert.equal(status, 403);
    assert.match((body as { message: string }).message, /PodReachesTooFar: .*spec\.hostIPC of the access pod is set/);
  });

  const flagged = (name: string): Manifest => template(name, { ...agentRef, allowPrivilegedPod: true });

  it('may have all of that where an administrator allows it for the template and the namespace', async () => {
    await stage.apply(flagged('admin-agent'));
    const isRefused = (request: StoredRequest): boolean =>
      conditionOf(request, 'AccessResourcesCreated')?.reason === 'ResourceRefused';
    const denied = await stage.requestUntil('to be denied', await ask('admin-agent'), isRefused);
    assert.match(
      conditionOf(denied, 'AccessResourcesCreated')?.message ?? '',
      /PodReachesTooFar: .* needs the label access\.drawbridge\.dev\/allow-privileged on the Namespace/,
    );
    await stage.kubectl('label', 'namespace', stage.namespace, 'access.drawbridge.dev/allow-privileged=true');
    let asked = 0;
    // The API server needs a moment until it observes the label.
    const { status } = await until(
      'the privileged pod to be created',
      async () => {
        asked += 1;
        const spec = { templateName: 'admin-agent', duration: '10m' };
        const request = await stage.createOk(stage.alice, podRequest(`labelled-${asked}`, spec));
        const decided = await stage.requestUntil(
          'to be decided',
          request,
          (now) => now.status?.ready === true || isRefused(now),
        );
        return decided.status?.ready === true && decided;
      },
      { timeoutMs: 30_000, everyMs: 200 },
    );
    // So far, policies denied the calls, not RBAC.
    stage.ignoreEarlierCalls();
    const pod = await stage.kubectl('get', 'pod', status?.podName ?? '', '-o', 'jsonpath={.spec.hostPID}');
    assert.equal(pod, 'true');
  });

  it('is not privileged by a user who may only write templates', async () => {
    const { status, body } = await create(erin, flagged('erin-agent'));
    assert.equal(status, 403, JSON.stringify(body));
    assert.match(
      (body as { message: string }).message,
      /AuthorLacksRights: .* "erin" may not allow-privileged podaccesstemplates\.crds\.wizardofoz\.co "erin-agent"/,
    );
    assert.equal((await create(erin, template('erin-agent', agentRef))).status, 201);
    const url = stage.urlOf('PodAccessTemplate', 'erin-agent');
    assert.equal((await erin.call('PATCH', url, { spec: { allowPrivilegedPod: true } })).status, 403);
    const other = stage.urlOf('PodAccessTemplate', 'admin-agent');
    const widened = { spec: { accessConfig: { allowedGroups: ['devs', 'owners'] } } };
    assert.equal((await erin.call('PATCH', other, widened)).status, 403, 'nor what an administrator has opened up');
  });

  it('is privileged by a user with the verb allow-privileged on this template', async () => {
    await stage.kubectl(
      ...['create', 'role', 'one-agent', '--verb=allow-privileged'],
      ...['--resource=podaccesstemplates.crds.wizardofoz.co', '--resource-name=erin-agent'],
    );
    await stage.kubectl('create', 'rolebinding', 'one-agent', '--role=one-agent', '--user=erin');
    const allowed = { verb: 'allow-privileged', group: 'crds.wizardofoz.co', resource: 'podaccesstemplates' };
    const isAllowed = () => erin.may({ namespace: stage.namespace, ...allowed, name: 'erin-agent' });
    await until('the API server to observe the permission', isAllowed, { timeoutMs: 30_000 });
    const url = stage.urlOf('PodAccessTemplate', 'erin-agent');
    assert.equal((await erin.call('PATCH', url, { spec: { allowPrivilegedPod: true } })).status, 200);
    assert.equal((await create(erin, flagged('other-agent'))).status, 403);
    assert.ok((await stage.ready(await ask('erin-agent'))).status?.ready);
  });
});

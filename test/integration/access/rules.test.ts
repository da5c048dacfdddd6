import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../../sandbox/wait.ts';
import { covers, type RbacRule } from '../../../src/rbac/rule-cover.ts';
import { accessTemplate, role } from '../../support/access-manifests.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { valuesOf } from '../../support/page-commands.ts';
import { Person } from '../../support/person.ts';
import { sharedPlane } from '../../support/plane.ts';
import { chooseSeed, seededRandom } from '../../support/random.ts';

const page = 'docs/tasks/write-a-template.md';
const [logs, forward] = valuesOf(page, 'values.yaml').grantable;

interface GrantedRules {
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
}
const rulesOf = ({ status }: StoredRequest): readonly GrantedRules[] =>
  (status?.grant as { rules?: readonly GrantedRules[] } | undefined)?.rules ?? [];

describe('rules that a template adds', () => {
  let stage: AccessStage;
  let erin: Person;
  let flags: string[];

  before(async function () {
    this.timeout(180_000);
    const plane = await sharedPlane();
    const grantable = join(plane.directory, 'grantable.json');
    await writeFile(grantable, JSON.stringify([logs, forward]));
    flags = [`--grantable=${grantable}`];
    stage = await AccessStage.open({ flags });
    // The permissions that the chart grants the server for the same rules.
    await stage.apply(role('grantable', logs, forward));
    const { serverUser } = stage.server.installation;
    await stage.kubectl('create', 'rolebinding', 'grantable', '--role=grantable', `--user=${serverUser}`);
    erin = await Person.of(plane, 'erin', ['authors']);
    await stage.kubectl(
      'create',
      'role',
      'author',
      '--verb=create,update',
      '--resource=podaccesstemplates,execaccesstemplates',
    );
    await stage.kubectl('create', 'role', 'debugger', '--verb=get,list,watch,create', '--resource=pods,pods/exec');
    for (const name of ['author', 'debugger']) {
      await stage.kubectl('create', 'rolebinding', `erin-${name}`, `--role=${name}`, '--user=erin');
    }
  });
  after(() => stage?.close());

  const template = (name: string, rules: readonly object[]): Manifest =>
    accessTemplate('ExecAccessTemplate', name, undefined, { rules });
  const may = (person: Person, verb: string, subresource: string, name: string): Promise<boolean> =>
    person.may({ namespace: stage.namespace, verb, resource: 'pods', subresource, name });
  /** Resolves once RBAC allows the call, or no longer allows it: the API server observes changes a moment later. */
  const observed = (allowed: boolean, ...call: Parameters<typeof may>): Promise<boolean> =>
    until(
      `${call[0].name} to ${call[1]} pods/${call[2]} of ${call[3]}: ${allowed}`,
      async () => (await may(...call)) === allowed,
      { timeoutMs: 30_000 },
    );

  it('apply only to the granted pod and the requester', async () => {
    await stage.apply(template('logs', [logs]));
    await stage.templateReady('ExecAccessTemplate', 'logs');
    const request = await stage.createReady(stage.alice, execRequest('read', { templateName: 'logs' }));
    const pod = request.status?.podName ?? '';
    assert.deepEqual(
      rulesOf(request).map(({ resources, resourceNames }) => [...resources, ...resourceNames]),
      [
        ['pods', pod],
        ['pods/exec', pod],
        ['pods/log', pod],
      ],
    );
    await observed(true, stage.alice, 'get', 'log', pod);
    assert.equal(await may(stage.alice, 'get', 'log', 'another'), false);
    assert.equal(await may(stage.alice, 'get', 'log', ''), false);
    assert.equal(await may(stage.alice, 'create', 'portforward', pod), false);
    assert.equal(await may(stage.carol, 'get', 'log', pod), false);

    // Neither the next reconcile nor a restart reads the template again.
    await stage.apply(template('logs', [logs, forward]));
    await stage.templateReady('ExecAccessTemplate', 'logs');
    await stage.stop();
    await stage.start({ installation: stage.server.installation, flags });
    const after = await stage.read('ExecAccessRequest', 'read');
    assert.ok(after);
    assert.deepEqual(rulesOf(after), rulesOf(request));
    assert.equal(await may(stage.alice, 'create', 'portforward', pod), false);
    await stage.plane.call('DELETE', stage.urlOf('ExecAccessRequest', 'read'));
    await stage.closed(request);
    await observed(false, stage.alice, 'get', 'log', pod);
  });

  const ofPage = valuesOf(page, 'exec: false').accessConfig;
  for (const [name, subresource, verb, command, config] of [
    ['payments-logs', 'log', 'get', /^kubectl logs -f -n access-\S+ payments-/, ofPage],
    ['payments-port', 'portforward', 'create', /^kubectl port-forward -n access-\S+ payments-\S+ 8080:8080$/, {}],
  ] as const) {
    it(`of examples/without-exec.yaml replace exec: ${name}`, async () => {
      await stage.applyFiles('examples/without-exec.yaml');
      await stage.configure('ExecAccessTemplate', name, config);
      const request = await stage.createReady(stage.alice, execRequest(`by-${name}`, { templateName: name }));
      const pod = request.status?.podName ?? '';
      await observed(true, stage.alice, verb, subresource, pod);
      assert.equal(await may(stage.alice, 'get', '', pod), true);
      assert.equal(await may(stage.alice, 'create', 'exec', pod), false);
      const jsonpath = 'jsonpath={.status.accessMessage}';
      assert.match(await stage.kubectl('get', 'execaccessrequest', `by-${name}`, '-o', jsonpath), command);
      const attempt = await stage.plane.kubectl(['exec', '-n', stage.namespace, pod, '--as=alice', '--', 'true'], {
        reject: false,
      });
      assert.match(attempt.stderr, /[Ff]orbidden: User "alice" cannot (create|get) resource "pods\/exec"/);
      await stage.plane.call('DELETE', stage.urlOf('ExecAccessRequest', `by-${name}`));
      await stage.closed(request);
    });
  }

  it('apply to the pod of a PodAccessRequest too', async () => {
    await stage.configure('PodAccessTemplate', 'payments-shell', { rules: [forward] });
    const request = await stage.createReady(stage.alice, podRequest('forward'));
    await observed(true, stage.alice, 'create', 'portforward', request.status?.podName ?? '');
  });

  for (const [title, rules, message] of [
    [
      'that the installation does not allow',
      [{ ...logs, resources: ['pods/attach'] }],
      /NotGrantable: .*get pods\/attach, which .*; for pods\/attach it allows nothing; .* chart value grantable/,
    ],
    [
      'with a verb that the installation does not allow',
      [{ ...logs, verbs: ['list'] }],
      /NotGrantable: .*list pods\/log, which .*; for pods\/log it allows get; /,
    ],
    [
      'on a subresource that Pods do not have',
      [{ ...logs, resources: ['pods/logs'] }],
      /NotGrantable: .*; Pods have no subresource "logs", only .*, log, .*; correct the name/,
    ],
    ['on other resources', [{ ...logs, resources: ['secrets'] }], /InvalidTemplate: .*"secrets"/],
    ['with wildcards', [{ ...logs, verbs: ['*'] }], /InvalidTemplate: .*"\*"/],
    ['without resources', [{ apiGroups: [''], resources: [], verbs: ['get'] }], /resources/],
  ] as const) {
    it(`are denied ${title}`, async () => {
      const { status, body } = await erin.call('POST', stage.urlOf('ExecAccessTemplate'), template('bad', rules));
      assert.notEqual(status, 201);
      assert.match((body as { message: string }).message, message);
    });
  }

  it('are denied with URLs or names of objects, which no grant contains', async () => {
    for (const extra of [{ nonResourceURLs: ['/metrics'] }, { resourceNames: ['other'] }]) {
      const manifest = template('strict', [{ ...logs, ...extra }]);
      const { status, body } = await erin.call(
        'POST',
        `${stage.urlOf('ExecAccessTemplate')}?fieldValidation=Strict`,
        manifest,
      );
      assert.equal(status, 400);
      assert.match((body as { message: string }).message, /unknown field/);
    }
  });

  it('are denied from an author without the same permissions on every pod of the namespace', async () => {
    const create = (): Promise<{ status: number; body: unknown }> =>
      erin.call('POST', stage.urlOf('ExecAccessTemplate'), template('erins', [logs]));
    const { status, body } = await create();
    assert.equal(status, 403);
    assert.match(
      (body as { message: string }).message,
      /AuthorLacksRights: .*"erin" may not get pods\/log in namespace/,
    );
    await stage.kubectl('create', 'role', 'one-log', '--verb=get', '--resource=pods/log', '--resource-name=web');
    await stage.kubectl('create', 'rolebinding', 'erin-one-log', '--role=one-log', '--user=erin');
    await observed(true, erin, 'get', 'log', 'web');
    assert.equal((await create()).status, 403);
    await stage.kubectl('create', 'role', 'every-log', '--verb=get', '--resource=pods/log');
    await stage.kubectl('create', 'rolebinding', 'erin-every-log', '--role=every-log', '--user=erin');
    await observed(true, erin, 'get', 'log', '');
    assert.equal((await create()).status, 201);
  });

  it('and that the server does not hold make the template unready, with their names', async () => {
    await stage.kubectl('delete', 'rolebinding', 'grantable');
    // Rules of their own, because the server reuses answers about those of other templates.
    await stage.apply(template('not-held', [logs, { ...forward, verbs: ['get'] }]));
    await stage.templateReady('ExecAccessTemplate', 'not-held', false);
    const found = await stage.templateObserved('ExecAccessTemplate', 'not-held');
    const { reason, message } = conditionOf(found, 'AccessPlanValid') ?? {};
    assert.equal(reason, 'ResourceRefused');
    for (const resource of ['pods/log', 'pods/portforward'])
      assert.ok(message?.includes(`Resources:["${resource}"]`), message);
  });
});

describe('the subset check of rules', () => {
  const holders = 24;
  const rulesEach = 30;

  it(`agrees with the API server for ${holders * rulesEach} random pairs`, async function () {
    this.timeout(300_000);
    const plane = await sharedPlane();
    const seed = chooseSeed();
    const random = seededRandom(seed);
    const namespace = `cover-${seed}`;
    await plane.kubectl(['create', 'namespace', namespace]);
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const some = (words: readonly string[], most: number, least = 1): string[] => {
      const count = least + Math.floor(random() * (most - least + 1));
      return [...words].sort(() => random() - 0.5).slice(0, count);
    };
    const randomRule = (): RbacRule => ({
      apiGroups: random() < 0.15 ? ['*'] : some(['', 'apps'], 2),
      resources: some(['pods', 'pods/log', 'pods/exec', '*/log', 'pods/*', '*'], 2),
      verbs: random() < 0.15 ? ['*'] : some(['get', 'list', 'create'], 3),
      resourceNames: random() < 0.5 ? [] : some(['a', 'b', '*'], 2),
    });
    const randomRules = (most: number): RbacRule[] =>
      Array.from({ length: 1 + Math.floor(random() * most) }, randomRule);
    const makesRoles: RbacRule = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['create'] };
    const metadata = (name: string) => ({ name, namespace });

    let yes = 0;
    for (let index = 0; index < holders; index++) {
      const held = [...randomRules(3), makesRoles];
      const person = await Person.of(plane, `holder-${seed}-${index}`, []);
      const name = `held-${index}`;
      await plane.call('POST', `${rbac}/roles`, { metadata: metadata(name), rules: held });
      await plane.call('POST', `${rbac}/rolebindings`, {
        metadata: metadata(name),
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: person.name }],
      });
      const create = (rules: readonly RbacRule[]) =>
        person.call('POST', `${rbac}/roles?dryRun=All`, { metadata: metadata('asked'), rules });
      await until('the rights to be known', async () => (await create([makesRoles])).status === 201, {
        timeoutMs: 30_000,
      });
      for (let turn = 0; turn < rulesEach; turn++) {
        const asked = randomRules(2);
        const { status, body } = await create(asked);
        const details = JSON.stringify({ seed, held, asked, status, body });
        assert.ok(status === 201 || status === 403, details);
        if (status === 403) assert.match((body as { message: string }).message, /attempting to grant RBAC permissions/);
        assert.equal(covers(held, asked), status === 201, details);
        if (status === 201) yes++;
      }
    }
    await plane.kubectl(['delete', 'namespace', namespace, '--wait=false']);
    assert.ok(yes > 20 && yes < holders * rulesEach - 20, `${yes} yes, seed ${seed}`);
  });
});

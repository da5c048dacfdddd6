import assert from 'node:assert/strict';
import type { AuditCall } from '../../../sandbox/audit-log.ts';
import { accessTemplate, targetOf, workload } from '../../support/access-manifests.ts';
import { conditionOf, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

const kind = 'PodAccessTemplate';
const labels = { app: 'ledger' };
const ledgerRef = targetOf('ledger');
const paymentsRef = targetOf('payments');
const template = (name: string, spec: object): Manifest => accessTemplate(kind, name, spec);
const labelled = { controllerTargetMutationConfig: { podLabels: { purpose: 'shell' } } };
const purpose = { purpose: 'shell' };
const selectors: [object: Manifest, code: string, message: RegExp][] = [
  [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'shells' },
      spec: { selector: purpose, ports: [{ port: 80 }] },
    },
    'PodIsSelected',
    /^Service shells selects the access pod by its labels/,
  ],
  [
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'shells' },
      spec: { selector: { matchLabels: purpose }, maxUnavailable: 0 },
    },
    'PodIsSelected',
    /^PodDisruptionBudget shells selects the access pod by its labels/,
  ],
  [
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'shells' },
      spec: { podSelector: { matchLabels: labels }, policyTypes: ['Egress'] },
    },
    'ConfinementLost',
    /^NetworkPolicy shells isolates the egress of the pods of Deployment ledger by their labels \(app=ledger\)/,
  ],
];

describe('a stored template is judged by the objects around it', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await apply(
      template('marker', { ...paymentsRef, controllerTargetMutationConfig: { podLabels: { purpose: 'marker' } } }),
    );
    await judged('marker', 'Success');
  });
  after(() => stage?.close());

  const writesOf = (since: number): string[] =>
    stage.plane.auditLog
      .calls({ user: stage.server.installation.serverUser, since })
      .filter(({ verb, resource, uri, code }: AuditCall) => {
        const isOurs = uri.includes(`/namespaces/${stage.namespace}/`) && /templates\/status$/.test(resource);
        return isOurs && verb === 'patch' && code === 200;
      })
      .map(({ name }) => name)
      .filter((name) => !['marker', 'copy'].includes(name));
  /** What kubectl prints on standard error. */
  const apply = async (manifest: Manifest): Promise<string> =>
    (await stage.plane.kubectl(['apply', '-n', stage.namespace, '-f', '-'], { input: JSON.stringify(manifest) }))
      .stderr;
  const judged = (name: string, reason: string, of = kind): Promise<StoredRequest> =>
    stage.requestUntil(`to be judged ${reason}`, { kind: of, metadata: { name, uid: '' } }, ({ status, metadata }) => {
      const plan = (status?.conditions ?? []).find(({ type }) => type === 'AccessPlanValid');
      return plan?.reason === reason && plan.observedGeneration === metadata.generation;
    });
  const codesOf = (found: StoredRequest): (string | boolean | undefined)[] => [
    found.status?.ready,
    conditionOf(found, 'AccessPlanValid')?.status,
    conditionOf(found, 'Ready')?.reason,
  ];

  it('is not ready without its workload, and kubectl prints the code of the warning', async () => {
    const stderr = await apply(template('ledger', { ...ledgerRef, ...labelled }));
    assert.match(stderr, /^Warning: TargetNotFound: Deployment "ledger" does not exist in namespace access-/m);
    assert.deepEqual(codesOf(await judged('ledger', 'TargetNotFound')), [false, 'False', 'TargetNotFound']);
    const wide = await stage.kubectl('get', 'podaccesstemplate', 'ledger', '-o', 'wide');
    assert.match(
      wide,
      /^NAME +READY +STATE .* WHY\nledger +false +TargetNotFound .* Deployment "ledger" does not exist/,
    );
    const described = await stage.kubectl('describe', 'podaccesstemplate', 'ledger');
    const [, condition = ''] =
      /^ +Message: +Deployment "ledger" .*; create it, or write (?:.*\n)((?:.*\n){4})/m.exec(described) ?? [];
    assert.match(condition, /Reason: +TargetNotFound\n +Status: +False\n +Type: +AccessPlanValid/);
  });

  it('becomes ready in one write when its workload is created', async () => {
    const since = stage.plane.auditLog.mark();
    await apply(workload('ledger'));
    assert.deepEqual(codesOf(await judged('ledger', 'Success')), [true, 'True', 'Ready']);
    const table = await stage.kubectl('get', 'podaccesstemplate', 'ledger');
    assert.match(table, /^NAME +READY +STATE .*\nledger +true +Ready /m);
    await settled();
    assert.deepEqual(writesOf(since), ['ledger']);
  });

  const markers: Manifest = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'markers' },
    spec: { selector: { purpose: 'marker' }, ports: [{ port: 80 }] },
  };
  /** Resolves once the judgements of all earlier changes are made: they are made in the order of the changes. */
  const settled = async (): Promise<void> => {
    await apply(markers);
    await judged('marker', 'PodIsSelected');
    await stage.kubectl('delete', 'service', 'markers');
    await judged('marker', 'Success');
  };

  for (const [object, code, message] of selectors) {
    it(`is not ready while a ${object.kind} denies its pod, in one write for each change, with the code of the warning`, async () => {
      const since = stage.plane.auditLog.mark();
      await apply(object);
      const found = await judged('ledger', code);
      assert.deepEqual(codesOf(found), [false, 'False', code]);
      assert.match(conditionOf(found, 'AccessPlanValid')?.message ?? '', message);
      const wide = await stage.kubectl('get', 'podaccesstemplate', 'ledger', '-o', 'wide');
      assert.match(wide, new RegExp(`^ledger +false +${code} .* ${message.source.slice(1)}`, 'm'));
      const copy = template('copy', { ...ledgerRef, ...labelled });
      assert.match(await apply(copy), new RegExp(`^Warning: ${code}: ${message.source.slice(1)}`, 'm'));
      await stage.kubectl('delete', 'podaccesstemplate', 'copy');
      await stage.kubectl('delete', object.kind, 'shells');
      assert.deepEqual(codesOf(await judged('ledger', 'Success')), [true, 'True', 'Ready']);
      await settled();
      assert.deepEqual(writesOf(since), ['ledger', 'ledger']);
    });
  }

  describe('whose pod another object denies', () => {
    const [service] = selectors[0] as (typeof selectors)[number];
    let open: StoredRequest;

    before(async () => {
      open = await stage.createReady(stage.alice, podRequest('open', { templateName: 'ledger', duration: '1h' }));
      await apply(service);
      await judged('ledger', 'PodIsSelected');
    });

    it('keeps its open grants', async () => {
      await settled();
      const stored = await stage.read(open.kind, open.metadata.name);
      assert.deepEqual([stored?.status?.ready, stored?.metadata.deletionTimestamp], [true, undefined]);
      const children = (await stage.children(open.metadata.uid)).map((child) => child.kind).sort();
      assert.deepEqual(children, ['Pod', 'Role', 'RoleBinding']);
      const table = await stage.kubectl('get', 'podaccessrequest,podaccesstemplate', '-o', 'wide');
      assert.match(table, /\/open +ledger +\S+ +true +Open +alice .* access is open$/m);
      assert.match(table, /\/ledger +false +PodIsSelected /);
    });

    it('warns who requests it with the code, and then denies the request with that code', async () => {
      const asked = podRequest('late', { templateName: 'ledger' });
      const { code, stderr } = await stage.alice.kubectl(['create', '-n', stage.namespace, '-f', '-'], {
        input: JSON.stringify(asked),
        reject: false,
      });
      assert.equal(code, 0, stderr);
      assert.match(stderr, /^Warning: PodIsSelected: Service shells selects the access pod by its labels/m);
      await stage.requestUntil(
        'to be denied with the code',
        { kind: asked.kind, metadata: { name: 'late', uid: '' } },
        (now) => conditionOf(now, 'AccessResourcesCreated')?.reason === 'PodIsSelected',
      );
    });

    it('grants requests again once the object is gone', async () => {
      await stage.kubectl('delete', 'service', 'shells');
      await judged('ledger', 'Success');
      await stage.createReady(stage.alice, podRequest('again', { templateName: 'ledger' }));
    });
  });

  it('has the same conditions after a restart, a relabelled Service, and a rollout that leaves its pods alike, with no write', async () => {
    await apply(selectors[1]?.[0] as Manifest);
    await judged('ledger', 'PodIsSelected');
    await settled();
    const before = await stage.read(kind, 'ledger');
    const since = stage.plane.auditLog.mark();
    await stage.restart();
    await stage.kubectl('label', 'deployment/ledger', 'poddisruptionbudget/shells', 'team=payments');
    await stage.kubectl('scale', 'deployment/ledger', '--replicas=2');
    await settled();
    assert.deepEqual(writesOf(since), []);
    assert.deepEqual(await stage.read(kind, 'ledger'), before);
    await stage.kubectl('delete', 'poddisruptionbudget', 'shells');
    await judged('ledger', 'Success');
  });
});

import assert from 'node:assert/strict';
import type { AuditCall } from '../../../sandbox/audit-log.ts';
import { until } from '../../../sandbox/wait.ts';
import type { RequestStatus } from '../../../src/api/access/status.ts';
import { accessTemplate, approverRights, targetOf } from '../../support/access-manifests.ts';
import { execRequest, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage, isMarker, withoutMarker } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';

/**
 * Not counted: lists and watches, which serve all requests at once; Events, which are grouped and may be dropped; the Lease, which
 * belongs to the process; SubjectAccessReviews, which only callers outside the allowed groups cause.
 */
const uncountedVerbs = ['list', 'watch'];
const uncountedResources = ['events', 'leases', 'subjectaccessreviews'];
const writeVerbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];

const templateKinds = 'podaccesstemplates,execaccesstemplates';
const isDryRun = (uri: string): boolean => uri.includes('dryRun=All');

describe('the API calls of access', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });

  after(() => stage?.close());

  const counted = (since: number): AuditCall[] =>
    stage.plane.auditLog
      .calls({ user: stage.server.installation.serverUser, since })
      // Excludes calls for objects of other tests, and dry runs for templates, which store nothing.
      .filter(({ uri, name }) => uri.includes(`/namespaces/${stage.namespace}/`) && !isMarker(name))
      .filter(({ uri }) => !isDryRun(uri))
      .filter(({ verb, resource }) => !uncountedVerbs.includes(verb) && !uncountedResources.includes(resource));

  /** The calls for one request, because the server may still remove finalizers of earlier requests. Includes the read of the pod's ReplicaSet. */
  const callsFor = ({ metadata: { name = '' } }: Manifest, since: number): AuditCall[] =>
    counted(since).filter((call) => call.name.startsWith(name) || call.resource === 'replicasets');

  /** The reads that prove that the policies are in force: decisions at the same time share them. */
  const proofs = (since: number): string[] =>
    stage.plane.auditLog
      .calls({ user: stage.server.installation.serverUser, since, verbs: ['get'] })
      .filter(({ name, resource }) => name === 'drawbridge-policies' || /^validatingadmissionpolic/.test(resource))
      .map(({ resource, name }) => `${resource} ${name}`);

  const writes = (calls: readonly AuditCall[]): string[] =>
    calls.filter(({ verb }) => writeVerbs.includes(verb)).map(({ verb, resource }) => `${verb} ${resource}`);

  /**
   * Excludes one write of a busy machine: if a pod takes longer than a second, the server reports that in a status write before the one
   * with Ready.
   */
  const withoutLateness = (calls: readonly AuditCall[]): readonly AuditCall[] => {
    const opened = calls.find(({ verb, resource }) => verb === 'create' && resource === 'rolebindings');
    const closed = calls.findIndex(({ verb }) => verb === 'delete');
    const untilClosed = closed < 0 ? calls : calls.slice(0, closed);
    const statusWrites = untilClosed.filter(
      ({ verb, resource }) => verb === 'patch' && resource.endsWith('requests/status'),
    );
    const [, progress, ready] = statusWrites;
    const lateMs = Date.parse(ready?.time ?? '') - Date.parse(opened?.time ?? '');
    return lateMs > 1000 ? calls.filter((call) => call !== progress) : calls;
  };

  /** Resolves to the calls once at least `count` are logged: a read may return a write before the API server logs it. */
  const logged = async (calls: () => readonly AuditCall[], count: number): Promise<readonly AuditCall[]> =>
    until(`${count} calls in the audit log`, () => calls().length >= count && calls(), { timeoutMs: 30_000 });

  const print = (what: string, calls: readonly AuditCall[]): void =>
    console.log(`      ${what}: ${calls.length} calls, ${writes(calls).length} of them writes`);

  const openings: [string, Manifest, string[]][] = [
    [
      'a new pod',
      podRequest('open-pod', { duration: '10m' }),
      [
        'patch podaccessrequests/status',
        'create pods',
        'create roles',
        'create rolebindings',
        'patch podaccessrequests/status',
      ],
    ],
    [
      'a running pod',
      execRequest('open-exec', { duration: '10m' }),
      [
        'get replicasets',
        'patch execaccessrequests/status',
        'create roles',
        'create rolebindings',
        'patch execaccessrequests/status',
      ],
    ],
  ];

  for (const [what, manifest, expected] of openings) {
    it(`are ${expected.join(', ')} until a request for ${what} is Ready`, async () => {
      const since = stage.plane.auditLog.mark();
      const request = await stage.createReady(stage.alice, manifest);
      const calls = await logged(() => withoutLateness(callsFor(manifest, since)), expected.length);
      await stage.alice.call('DELETE', stage.urlOf(manifest.kind, request.metadata.name));
      await stage.closed(request);
      print(`${manifest.kind} until Ready`, calls);
      assert.deepEqual(
        calls.map(({ verb, resource }) => `${verb} ${resource}`),
        expected,
      );
      assert.deepEqual(proofs(since).sort(), [
        'secrets drawbridge-policies',
        'validatingadmissionpolicies drawbridge-access',
        'validatingadmissionpolicies drawbridge-children',
        'validatingadmissionpolicybindings drawbridge-access',
        'validatingadmissionpolicybindings drawbridge-children',
      ]);
    });
  }

  it('are 6 writes if the pod starts slowly', async () => {
    await stage.apply(slowTemplate);
    await stage.templateReady('PodAccessTemplate', 'slow-shell');
    const since = stage.plane.auditLog.mark();
    const late = podRequest('late-pod', { duration: '10m', templateName: 'slow-shell' });
    await stage.createReady(stage.alice, late);
    const calls = await logged(() => callsFor(late, since), 6);
    print('PodAccessRequest until Ready, slow pod', calls);
    assert.equal(writes(calls).length, 6, writes(calls).join(', '));
  });

  const endings: [string, Manifest, number, number][] = [
    ['with a new pod', podRequest('life-pod', { duration: '6s' }), 11, 0],
    ['in a running pod', execRequest('life-exec', { duration: '6s' }), 9, 1],
  ];

  for (const [what, manifest, limit, reads] of endings) {
    it(`are ${limit} writes and ${reads} reads for a whole life ${what}`, async () => {
      const since = stage.plane.auditLog.mark();
      await stage.gone(await stage.createReady(stage.alice, manifest));
      // Includes calls after the end.
      await stage.runMarkerGrant();
      const calls = withoutMarker(withoutLateness(callsFor(manifest, since)));
      print(`${manifest.kind}, whole life`, calls);
      assert.equal(writes(calls).length, limit, writes(calls).join(', '));
      assert.equal(calls.length, limit + reads);
    });
  }

  describe('without work', () => {
    const names = ['one', 'two', 'three'];

    before(async () => {
      const asked = names.flatMap((name) => [podRequest(name), execRequest(name)]);
      await Promise.all(asked.map((manifest) => stage.createReady(stage.alice, manifest)));
    });

    it('are no write after a restart', async function () {
      this.timeout(90_000);
      const { items } = JSON.parse(await stage.kubectl('get', templateKinds, '-o', 'json')) as { items: Manifest[] };
      const ofPods = items.filter(({ kind }) => kind === 'PodAccessTemplate').length;
      const since = stage.plane.auditLog.mark();
      const dryRuns = (): string[] =>
        stage.plane.auditLog
          .calls({ user: stage.server.installation.serverUser, since })
          .filter(({ uri }) => uri.includes(`/namespaces/${stage.namespace}/`) && isDryRun(uri))
          .map(({ resource }) => resource);
      const podDryRuns = (): number => dryRuns().filter((resource) => resource === 'pods').length;
      await stage.restart();
      // The server judges templates in a small share of the processor time, so on a busy machine some may wait for seconds.
      await until('a dry run for each pod', () => podDryRuns() >= ofPods, { timeoutMs: 30_000 });
      await stage.runMarkerGrant();
      const calls = counted(since);
      print(`restart with ${2 * names.length} grants`, calls);
      assert.deepEqual(writes(calls), []);
      assert.equal(podDryRuns(), ofPods, 'one dry run for each pod');
      assert.ok(dryRuns().length - ofPods <= items.length, `at most one for the Role of each template: ${dryRuns()}`);
    });

    it('are no write after a user labels a request', async () => {
      const since = stage.plane.auditLog.mark();
      await stage.kubectl('label', 'podaccessrequests,execaccessrequests', '--all', 'team=payments');
      await stage.runMarkerGrant();
      const calls = counted(since);
      print('label', calls);
      assert.deepEqual(writes(calls), []);
    });
  });

  describe('for a request that two people must approve', () => {
    const manifest = podRequest('approved-pod', { duration: '10m', templateName: 'approved-shell' });
    /**
     * Also counts lists of votes, and SubjectAccessReviews. Excludes calls of the process, such as the heads of its audit journal, the
     * reviews of its own permissions, lists that begin watches, and dry runs for templates, which may come at any time.
     */
    const callsOfVotes = (since: number): string[] =>
      stage.plane.auditLog
        .calls({ user: stage.server.installation.serverUser, since })
        .filter(({ verb, resource, uri }) => verb !== 'watch' && resource !== 'events' && !isDryRun(uri))
        .filter(({ verb, resource }) => verb !== 'list' || resource === 'accessvotes')
        .filter(({ resource, uri }) => resource === 'subjectaccessreviews' || uri.includes(`/${stage.namespace}/`))
        .map(({ verb, resource }) => `${verb} ${resource}`);
    const vote = async (person: Person): Promise<void> => {
      const answer = await stage.vote(person, manifest);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
    };
    const approvalsUntil = (count: number): Promise<StoredRequest> =>
      stage.requestUntil(`to wait with ${count} votes`, request, ({ status }) => {
        const { approval } = (status ?? {}) as RequestStatus;
        return approval?.state === 'Pending' && (approval.votes ?? []).length === count;
      });
    let request: StoredRequest;

    before(async () => {
      await stage.apply(approvedTemplate, ...approverRights('podaccesstemplates', 'bob', 'carol'));
      await stage.templateReady('PodAccessTemplate', 'approved-shell');
    });

    it('are one write until it waits', async () => {
      const since = stage.plane.auditLog.mark();
      request = await stage.createOk(stage.alice, manifest);
      await approvalsUntil(0);
      const calls = await until('the write', () => callsOfVotes(since).length > 0 && callsOfVotes(since), {
        timeoutMs: 30_000,
      });
      assert.deepEqual(calls, ['patch podaccessrequests/status']);
    });

    it('are one write, and reviews of the voter, for a vote that decides nothing', async () => {
      const since = stage.plane.auditLog.mark();
      await vote(stage.bob);
      await approvalsUntil(1);
      // At admission, when counted, and after the write.
      const calls = await until('4 calls', () => callsOfVotes(since).length >= 4 && callsOfVotes(since), {
        timeoutMs: 30_000,
      });
      assert.deepEqual([...new Set(calls)], ['create subjectaccessreviews', 'patch podaccessrequests/status']);
      assert.equal(calls.filter((call) => call.startsWith('patch')).length, 1);
    });

    it('are one review at admission, and one list, one template, and one review of each voter more, for the vote that opens it', async () => {
      const since = stage.plane.auditLog.mark();
      await vote(stage.carol);
      await stage.ready(request);
      const calls = callsOfVotes(since);
      print('the deciding vote until Ready', counted(since));
      assert.deepEqual(calls.slice(0, 2), ['create subjectaccessreviews', 'list accessvotes']);
      // At the same time, so in any order.
      assert.deepEqual(calls.slice(2, 5).sort(), [
        'create subjectaccessreviews',
        'create subjectaccessreviews',
        'get podaccesstemplates',
      ]);
      // The read of the template, and the writes.
      const opening = await logged(() => withoutLateness(counted(since)), 6);
      assert.deepEqual(writes(opening), openings[0]?.[2]);
      await stage.alice.call('DELETE', stage.urlOf(manifest.kind, request.metadata.name));
      await stage.closed(request);
    });
  });
});

const approvedTemplate = accessTemplate('PodAccessTemplate', 'approved-shell', undefined, {
  approvals: { all: [{ name: 'peer', count: 2 }] },
});

const slowTemplate = accessTemplate('PodAccessTemplate', 'slow-shell', {
  ...targetOf('payments'),
  controllerTargetMutationConfig: { podAnnotations: { 'sandbox/ready-after': '5s' } },
});

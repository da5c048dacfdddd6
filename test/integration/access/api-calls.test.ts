import assert from 'node:assert/strict';
import type { AuditCall } from '../../../sandbox/audit-log.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage, isMarker, withoutMarker } from '../../support/access-stage.ts';

/**
 * Not counted: lists and watches, which serve all requests at once; Events, which are grouped and may be dropped; the Lease, which
 * belongs to the process; SubjectAccessReviews, which only callers outside the allowed groups cause.
 */
const uncountedVerbs = ['list', 'watch'];
const uncountedResources = ['events', 'leases', 'subjectaccessreviews'];
const writeVerbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];

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
      // Excludes calls for objects of other tests.
      .filter(({ uri, name }) => uri.includes(`/namespaces/${stage.namespace}/`) && !isMarker(name))
      .filter(({ verb, resource }) => !uncountedVerbs.includes(verb) && !uncountedResources.includes(resource));

  /** The calls for one request, because the server may still remove finalizers of earlier requests. Includes the read of the pod's ReplicaSet. */
  const callsFor = ({ metadata: { name = '' } }: Manifest, since: number): AuditCall[] =>
    counted(since).filter((call) => call.name.startsWith(name) || call.resource === 'replicasets');

  const writes = (calls: readonly AuditCall[]): string[] =>
    calls.filter(({ verb }) => writeVerbs.includes(verb)).map(({ verb, resource }) => `${verb} ${resource}`);

  /**
   * Excludes one write of a busy machine: if a pod takes longer than a second, the server reports that in a status write before the one
   * with Ready.
   */
  const withoutLateness = (calls: readonly AuditCall[]): readonly AuditCall[] => {
    const opened = calls.find(({ verb, resource }) => verb === 'create' && resource === 'rolebindings');
    const statusWrites = calls.filter(({ verb, resource }) => verb === 'patch' && resource.endsWith('requests/status'));
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
    ['with a new pod', podRequest('life-pod', { duration: '3s' }), 10, 0],
    ['in a running pod', execRequest('life-exec', { duration: '3s' }), 8, 1],
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

    it('are no write after a restart', async () => {
      const since = stage.plane.auditLog.mark();
      await stage.restart();
      await stage.runMarkerGrant();
      const calls = counted(since);
      print(`restart with ${2 * names.length} grants`, calls);
      assert.deepEqual(writes(calls), []);
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
});

const slowTemplate: Manifest = {
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'slow-shell' },
  spec: {
    accessConfig: { allowedGroups: ['devs'] },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
    controllerTargetMutationConfig: { podAnnotations: { 'sandbox/ready-after': '2500ms' } },
  },
};

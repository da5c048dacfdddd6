import assert from 'node:assert/strict';
import type { AuditCall } from '../../../sandbox/audit-log.ts';
import { execRequest, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage, isMarker, withoutMarker } from '../../support/access-stage.ts';

/**
 * Not counted: lists and watches, which serve all requests at once; Events, which are grouped and may be dropped; the Lease, which
 * belongs to the process; SubjectAccessReviews, which only a caller outside of the allowed groups costs.
 */
const uncountedVerbs = ['list', 'watch'];
const uncountedResources = ['events', 'leases', 'subjectaccessreviews'];
const writeVerbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];

describe('the calls that access costs the API', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });

  after(() => stage?.close());

  const counted = (since: number): AuditCall[] =>
    stage.plane.auditLog
      .calls({ user: stage.server.installation.serverUser, since })
      // What other tests left behind is none of this test's business.
      .filter(({ uri, name }) => uri.includes(`/namespaces/${stage.namespace}/`) && !isMarker(name))
      .filter(({ verb, resource }) => !uncountedVerbs.includes(verb) && !uncountedResources.includes(resource));

  /** For one request, as those before it may still have their finalizer taken off; the ReplicaSet is that of the pod to enter. */
  const callsFor = ({ metadata: { name = '' } }: Manifest, since: number): AuditCall[] =>
    counted(since).filter((call) => call.name.startsWith(name) || call.resource === 'replicasets');

  const writes = (calls: readonly AuditCall[]): string[] =>
    calls.filter(({ verb }) => writeVerbs.includes(verb)).map(({ verb, resource }) => `${verb} ${resource}`);

  /**
   * On a busy machine a pod may take the second after which it counts as late, and that is told in a write of its own: the status
   * write before the one that says Ready. Here it does not count.
   */
  const withoutLateness = (calls: readonly AuditCall[]): readonly AuditCall[] => {
    const opened = calls.find(({ verb, resource }) => verb === 'create' && resource === 'rolebindings');
    const told = calls.filter(({ verb, resource }) => verb === 'patch' && resource.endsWith('requests/status'));
    const [, progress, ready] = told;
    const lateMs = Date.parse(ready?.time ?? '') - Date.parse(opened?.time ?? '');
    return lateMs > 1000 ? calls.filter((call) => call !== progress) : calls;
  };

  const tell = (what: string, calls: readonly AuditCall[]): void =>
    console.log(`      ${what}: ${calls.length} calls, ${writes(calls).length} of them writes`);

  const openings: [string, Manifest, string[]][] = [
    [
      'a pod of its own',
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
    it(`come to ${expected.join(', ')} until a request for ${what} is Ready`, async () => {
      const since = stage.plane.auditLog.mark();
      const request = await stage.createReady(stage.alice, manifest);
      const calls = withoutLateness(callsFor(manifest, since));
      await stage.alice.call('DELETE', stage.urlOf(manifest.kind, request.metadata.name));
      await stage.closed(request);
      tell(`${manifest.kind} until Ready`, calls);
      assert.deepEqual(
        calls.map(({ verb, resource }) => `${verb} ${resource}`),
        expected,
      );
    });
  }

  it('come to 6 writes when the pod takes its time', async () => {
    await stage.apply(slowTemplate);
    await stage.templateReady('PodAccessTemplate', 'slow-shell');
    const since = stage.plane.auditLog.mark();
    const late = podRequest('late-pod', { duration: '10m', templateName: 'slow-shell' });
    await stage.createReady(stage.alice, late);
    const calls = callsFor(late, since);
    tell('PodAccessRequest until Ready, slow pod', calls);
    assert.equal(writes(calls).length, 6, writes(calls).join(', '));
  });

  const endings: [string, Manifest, number, number][] = [
    ['with a pod of its own', podRequest('life-pod', { duration: '3s' }), 10, 0],
    ['in a running pod', execRequest('life-exec', { duration: '3s' }), 8, 1],
  ];

  for (const [what, manifest, limit, reads] of endings) {
    it(`come to ${limit} writes and ${reads} reads for a whole life ${what}`, async () => {
      const since = stage.plane.auditLog.mark();
      await stage.gone(await stage.createReady(stage.alice, manifest));
      // Nothing may come after the end either.
      await stage.runMarkerGrant();
      const calls = withoutMarker(withoutLateness(callsFor(manifest, since)));
      tell(`${manifest.kind}, whole life`, calls);
      assert.equal(writes(calls).length, limit, writes(calls).join(', '));
      assert.equal(calls.length, limit + reads);
    });
  }

  describe('with nothing to do', () => {
    const names = ['one', 'two', 'three'];

    before(async () => {
      const asked = names.flatMap((name) => [podRequest(name), execRequest(name)]);
      await Promise.all(asked.map((manifest) => stage.createReady(stage.alice, manifest)));
    });

    it('come to no write after a restart', async () => {
      const since = stage.plane.auditLog.mark();
      await stage.restart();
      await stage.runMarkerGrant();
      const calls = counted(since);
      tell(`restart with ${2 * names.length} grants`, calls);
      assert.deepEqual(writes(calls), []);
    });

    it('come to no write when someone labels a request', async () => {
      const since = stage.plane.auditLog.mark();
      await stage.kubectl('label', 'podaccessrequests,execaccessrequests', '--all', 'team=payments');
      await stage.runMarkerGrant();
      const calls = counted(since);
      tell('label', calls);
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

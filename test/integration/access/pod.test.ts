import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { requestConditions, summaryConditions } from '../../../src/api/access/names.ts';
import { conditionOf, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('a PodAccessRequest', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  describe('of a member of an allowed group', () => {
    let request: StoredRequest;

    before(async () => {
      await stage.alice.kubectl(['create', '-n', stage.namespace, '-f', '-'], {
        input: JSON.stringify(podRequest('debug', { duration: '10m' })),
      });
      const wait = ['wait', 'podaccessrequest/debug', '-n', stage.namespace, '--timeout=20s'];
      await stage.alice.kubectl([...wait, '--for=condition=AccessResourcesReady']);
      await stage.alice.kubectl([...wait, '--for=condition=AccessStillValid']);
      request = await stage.ready((await stage.read('PodAccessRequest', 'debug')) as StoredRequest);
    });

    it('has every condition True, with its reason and of its generation', () => {
      const conditions = request.status?.conditions ?? [];
      const expected = [...Object.values(requestConditions), summaryConditions.ready];
      assert.deepEqual(conditions.map(({ type }) => type).sort(), expected.sort());
      for (const { type, status, reason, observedGeneration } of conditions) {
        assert.deepEqual(
          { type, status, reason, observedGeneration },
          {
            type,
            status: 'True',
            reason: type === summaryConditions.ready ? 'Open' : 'Success',
            observedGeneration: request.metadata.generation,
          },
        );
      }
    });

    it('gets a Pod, a Role, and a RoleBinding under one name, from its own name and its uid', async () => {
      const name = `debug-${request.metadata.uid.slice(0, 8)}-access`;
      assert.equal(request.status?.podName, name);
      assert.deepEqual(await stage.children(request.metadata.uid), [
        { kind: 'Pod', name },
        { kind: 'Role', name },
        { kind: 'RoleBinding', name },
      ]);
    });

    it('shows the command that enters the pod', () => {
      const message = `kubectl exec -ti -n ${stage.namespace} ${request.status?.podName} -- /bin/sh`;
      assert.equal(request.status?.accessMessage, message);
      assert.equal(conditionOf(request, 'AccessMessage')?.message, message);
    });

    it('is recorded in Events, and in one audit line for the admission and one for the grant', async () => {
      const ours = await stage.audit(({ what }) => what.namespace === stage.namespace && what.name === 'debug');
      assert.deepEqual(
        ours.map(({ event, verdict, who }) => [event, verdict, who.user]),
        [
          ['admission', 'allowed', 'alice'],
          ['grant', 'granted', 'alice'],
        ],
      );
      const template = ['payments-shell', '-o', 'jsonpath={.metadata.uid} {.metadata.generation}'];
      const [uid, generation] = (await stage.kubectl('get', 'podaccesstemplate', ...template)).split(' ');
      const [asked] = ours;
      assert.deepEqual(
        [asked?.['template'], asked?.['templateUid'], asked?.['templateGeneration'], asked?.['duration']],
        ['payments-shell', uid, Number(generation), '10m'],
      );
      await until(
        'the Event AccessGranted',
        async () => (await stage.kubectl('events', '--for', 'podaccessrequest/debug')).includes('AccessGranted'),
        { timeoutMs: 30_000, everyMs: 200 },
      );
    });
  });
});

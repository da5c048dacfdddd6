import assert from 'node:assert/strict';
import { execAccessRequests } from '../../../../src/api/access/exec-access.ts';
import { podAccessRequests } from '../../../../src/api/access/pod-access.ts';
import type { Condition, KubeObject } from '../../../../src/api/object.ts';
import { pods, roleBindings } from '../../../../src/api/resources.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import type { JsonObject } from '../../../../src/kit/json-value.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { LifecycleStage, peer, requestName } from './lifecycle-stage.ts';

const minute = 60_000;
const look = { namespace: 'payments', name: 'look' };

describe('a request that ended', () => {
  let stage: LifecycleStage;
  /** Every state of the request that the API server stored, as `ready reason: message` of its condition Ready. */
  let shown: string[];
  beforeEach(async () => {
    stage = new LifecycleStage();
    shown = [];
    const put = stage.cluster.put.bind(stage.cluster);
    stage.cluster.put = (resource, object) => {
      const stored = put(resource, object);
      if (resource === podAccessRequests) shown.push(readyOf(stored));
      return stored;
    };
    await stage.start();
  });
  afterEach(() => stage.stop());

  const endedAt = (): string | undefined => stage.status.ended?.at;
  const deleteByUser = (): Promise<unknown> => stage.cluster.client.delete(podAccessRequests, requestName);

  it('says so before it goes, if its time has passed', async () => {
    await stage.granted();
    const expiresAt = stage.status.grant?.expiresAt ?? '';
    await stage.clock.advance(10 * minute);
    assert.equal(stage.request, undefined);
    assert.ok(
      shown.includes(`false Expired: access ended at ${expiresAt}: the granted time has passed`),
      shown.join('\n'),
    );
  });

  it('says that it is still open while the API server refuses to delete its RoleBinding, and then ends', async () => {
    await stage.granted();
    const error = new ApiError(403, 'Forbidden', 'cannot delete resource "rolebindings"');
    stage.cluster.fail('delete', 'rolebindings', { error });
    stage.change({ revoked: true });
    await stage.clock.advance(2 * minute);
    const why = 'the server tries to end the access (the request was revoked), but the API server refuses: ';
    assert.ok(stage.request);
    assert.equal(readyOf(stage.request), `false ResourceRefused: ${why}${error.message}`);
    assert.deepEqual(stage.cluster.names(roleBindings).length, 1);
    const refusals = () => stage.events.filter(({ reason }) => reason === 'ResourceRefused');
    assert.equal(refusals().length, 1, 'one Event, not one a try');
    const writes = stage.cluster.calls.filter(({ verb, plural }) => verb === 'patch' && plural === 'podaccessrequests');
    await stage.clock.advance(2 * minute);
    assert.deepEqual(
      stage.cluster.calls.filter(({ verb, plural }) => verb === 'patch' && plural === 'podaccessrequests'),
      writes,
      'no write while nothing changes',
    );

    stage.cluster.fault = () => {};
    await stage.clock.advance(6 * minute);
    assert.deepEqual([stage.request, stage.cluster.names(roleBindings)], [undefined, []]);
    assert.ok(shown.some((text) => /^false Revoked: access ended at/.test(text)));
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
  });

  it('says so before it goes, with the reason, if it was revoked', async () => {
    await stage.granted();
    await stage.clock.advance(minute);
    stage.change({ revoked: true, revokedReason: 'wrong pod' });
    await stage.clock.advance(100);
    assert.equal(stage.request, undefined);
    assert.match(shown.at(-1) ?? '', /^false Revoked: access ended at .*: the request was revoked: wrong pod$/);
  });

  it('goes without another write if a user deletes it', async () => {
    await stage.granted();
    stage.cluster.calls.length = 0;
    await deleteByUser();
    await stage.clock.advance(100);
    assert.equal(stage.request, undefined);
    const writes = stage.cluster.calls.map(({ verb, plural }) => `${verb} ${plural}`);
    assert.deepEqual(writes, [
      'delete podaccessrequests',
      'delete rolebindings',
      'delete roles',
      'delete pods',
      'patch podaccessrequests',
    ]);
  });

  it('says so if it was withdrawn before it was approved', async () => {
    stage.configure({ approvals: peer });
    await stage.clock.advance(10);
    stage.ask();
    await stage.clock.advance(10);
    assert.equal(stage.status.approval?.state, 'Pending');
    stage.change({ revoked: true });
    await stage.clock.advance(100);
    assert.equal(stage.request, undefined);
    assert.match(shown.at(-1) ?? '', /^false Revoked: the request ended at .*: the request was revoked$/);
  });

  describe('says why in one Event', () => {
    const events = (): string[] => stage.events.map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
    const waits = async (): Promise<void> => {
      stage.configure({ approvals: peer });
      await stage.clock.advance(10);
      stage.ask();
      await stage.clock.advance(minute);
      assert.equal(stage.status.approval?.state, 'Pending');
      assert.deepEqual(events(), []);
    };
    const revoked = 'Normal RequestEnded: the request ended before access opened: the request was revoked: not needed';

    it('if it was revoked while it waited', async () => {
      await waits();
      stage.change({ revoked: true, revokedReason: 'not needed' });
      await stage.clock.advance(15_000);
      assert.equal(stage.request, undefined);
      assert.deepEqual(events(), [revoked]);
    });

    it('if a user deleted it while it waited', async () => {
      await waits();
      await deleteByUser();
      await stage.clock.advance(15_000);
      assert.equal(stage.request, undefined);
      assert.deepEqual(events(), [
        'Normal RequestEnded: the request ended before access opened: the request was deleted',
      ]);
    });

    it('and not again under the next leader, while the finalizer of another program keeps it', async () => {
      await waits();
      const { metadata, ...rest } = stage.request ?? assert.fail('no request');
      const finalizers = [...(metadata.finalizers ?? []), 'example.com/keep'];
      stage.cluster.put(podAccessRequests, { ...rest, metadata: { ...metadata, finalizers } });
      await deleteByUser();
      await stage.clock.advance(30_000);
      await stage.restart();
      await stage.clock.advance(30_000);
      assert.deepEqual(stage.request?.metadata.finalizers, ['example.com/keep']);
      assert.equal(events().length, 1);
    });

    it('if access was open although its status has no grant: only that it ended', async () => {
      await stage.granted();
      await stage.stop();
      const { status: stored, ...rest } = stage.request ?? assert.fail('no request');
      const { grant: _, ...stripped } = stored as JsonObject;
      stage.cluster.put(podAccessRequests, {
        ...rest,
        status: stripped,
        spec: { ...(rest.spec as JsonObject), revoked: true },
      });
      stage.events.length = 0;
      await stage.start();
      await stage.clock.advance(15_000);
      assert.deepEqual(
        events().filter((event) => event.includes('before access opened')),
        [],
      );
    });

    it('if the API server does not take its status at first', async () => {
      await waits();
      stage.cluster.fail('patch', 'podaccessrequests');
      stage.change({ revoked: true, revokedReason: 'not needed' });
      await stage.clock.advance(5000);
      stage.cluster.fault = () => {};
      await stage.clock.advance(15_000);
      assert.equal(stage.request, undefined);
      assert.deepEqual(events(), [revoked]);
    });

    it('if it was denied, also after a user deleted it', async () => {
      await waits();
      await stage.clock.advance(60 * minute);
      const [denial = ''] = events();
      assert.match(denial, /^Warning \w+: /);
      await deleteByUser();
      await stage.clock.advance(15_000);
      assert.equal(stage.request, undefined);
      assert.deepEqual(events(), [denial]);
    });

    it('if it was granted', async () => {
      await stage.granted();
      stage.change({ revoked: true, revokedReason: 'not needed' });
      await stage.clock.advance(15_000);
      assert.equal(stage.request, undefined);
      assert.deepEqual(events().slice(1), ['Normal AccessRevoked: access ended: the request was revoked: not needed']);
    });

    const goOn = '; sessions that are open in its pod go on until they are closed or the pod is deleted';
    for (const [title, session, end, note] of [
      [
        'if direct sessions in a pod of a workload go on',
        undefined,
        () => stage.cluster.client.delete(execAccessRequests, look),
        `Normal AccessRevoked: access ended: the request was deleted${goOn}`,
      ],
      [
        'if the gateway ends the sessions',
        { via: 'Gateway' },
        () => stage.cluster.client.delete(execAccessRequests, look),
        'Normal AccessRevoked: access ended: the request was deleted',
      ],
      [
        'if the pod of the workload is gone',
        undefined,
        () => stage.cluster.client.delete(pods, { ...look, name: 'db-0' }),
        'Normal AccessRevoked: access ended: its pod has ended or no longer exists; create a new request',
      ],
      [
        'if the pod of the workload was evicted',
        undefined,
        async () => stage.podsAre({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory.' }),
        'Normal AccessRevoked: access ended: its pod has ended: Failed: Evicted: The node was low on memory.; create a new request',
      ],
    ] as const) {
      it(title, async () => {
        stage.gatewayIs('True');
        stage.putDatabase(session ? { session } : {});
        stage.putDatabasePod('Running');
        await stage.clock.advance(10);
        stage.ask({}, { name: 'look', exec: true });
        await stage.clock.advance(10);
        assert.ok(stage.isOpen);
        await end();
        await stage.clock.advance(15_000);
        assert.equal(events().at(-1), note);
      });
    }
  });

  it('goes even if the API server refuses its status', async () => {
    await stage.granted();
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb === 'patch' && plural === 'podaccessrequests' && stage.request?.metadata.deletionTimestamp === undefined)
        throw new ApiError(422, 'Invalid', 'status.conditions: too long');
    };
    await stage.clock.advance(10 * minute);
    assert.equal(stage.request, undefined);
  });

  for (const [what, config, minutes] of [
    ['its time passed', {}, 10],
    ['a shorter time passed', { maxDuration: '5m' }, 5],
  ] as const) {
    it(`ended when ${what}, even if the API server took longer to end it`, async () => {
      await stage.configured({ historyTTL: '1h' });
      await stage.granted();
      await stage.configured(config);
      const { promise, resolve } = Promise.withResolvers<void>();
      stage.cluster.fault = ({ verb, plural }) => (verb === 'delete' && plural === 'roles' ? promise : undefined);
      await stage.clock.advance(minutes * minute + 5000);
      assert.equal(endedAt(), undefined);
      resolve();
      await stage.pass(3000);
      const createdAtMs = Date.parse(stage.request?.metadata.creationTimestamp ?? '');
      assert.equal(endedAt(), formatTime(createdAtMs + minutes * minute));
    });
  }

  it('has lost its objects before its status is written, if it is denied while it opens', async () => {
    const error = new ApiError(422, 'Invalid', 'no such subject');
    stage.cluster.fail('create', 'rolebindings', { error });
    await stage.asked();
    assert.equal(stage.status.ended?.how, 'Denied');
    assert.deepEqual(stage.children, []);
    const calls = stage.cluster.calls.map(({ verb, plural }) => `${verb} ${plural}`);
    const ending = calls.slice(calls.indexOf('create rolebindings') + 1).filter((call) => !call.startsWith('get'));
    assert.deepEqual(ending, ['delete roles', 'delete pods', 'patch podaccessrequests']);
  });

  it('has lost its RoleBinding, Role, and Pod before its status is written', async () => {
    await stage.granted();
    stage.cluster.calls.length = 0;
    stage.cluster.fail('patch', 'podaccessrequests');
    await stage.clock.advance(10 * minute);
    assert.deepEqual(stage.cluster.names(roleBindings), []);
    assert.deepEqual(
      stage.cluster.calls.slice(0, 4).map(({ verb, plural }) => `${verb} ${plural}`),
      ['delete rolebindings', 'delete roles', 'delete pods', 'patch podaccessrequests'],
    );
    stage.cluster.fault = () => {};
    await stage.clock.advance(3000);
    assert.equal(stage.request, undefined);
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
  });
});

function readyOf({ status }: KubeObject): string {
  const { ready = false, conditions = [] } = (status ?? {}) as { ready?: boolean; conditions?: readonly Condition[] };
  const summary = conditions.find(({ type }) => type === 'Ready');
  return `${ready} ${summary?.reason}: ${summary?.message}`;
}

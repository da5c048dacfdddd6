import assert from 'node:assert/strict';
import type { KonnectorProcess } from '../../../sandbox/binding/konnector-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { syncerFinalizer } from '../../../src/api/binding/names.ts';
import { leases } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import { konnectorNamespace } from '../../support/binding/konnector-rights.ts';
import { BindingStage } from '../../support/binding/stage.ts';

const patience = { timeoutMs: 40_000 };
const lease = { namespace: konnectorNamespace, name: 'kube-bind' };
const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');

describe('two konnectors of one consumer', () => {
  let stage: BindingStage;
  let older: KonnectorProcess;
  let newer: KonnectorProcess;
  const kind = () => stage.kinds.ovens;

  const start = (): Promise<KonnectorProcess> => stage.side.consumer.start('--leader-elect=true');
  const works = async (name: string): Promise<void> => {
    await stage.create(kind(), { name });
    await stage.whenSynced(kind(), { name });
    await stage.report(kind(), { name }, { result: 'done' });
    await stage.whenObject(kind(), { name }, ({ status }) => own(status, 'result') === 'done');
  };
  const holder = async (): Promise<unknown> =>
    own((await stage.side.consumer.get(leases, lease))?.spec, 'holderIdentity');

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ isolation: 'None', informerScope: 'Cluster' });
  });
  after(async () => {
    await stage.side.consumer.client.delete(leases, lease);
    await stage.close();
  });

  it('wait for a konnector of kube-bind that holds the Lease, and acquire it when that konnector stops', async () => {
    const { consumer } = stage.side;
    const now = microTime(Date.now());
    await consumer.client.create(leases, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: lease,
      spec: { holderIdentity: 'konnector-of-kube-bind', leaseDurationSeconds: 15, acquireTime: now, renewTime: now },
    });
    const since = consumer.plane.auditLog.mark();
    older = await consumer.spawn('--leader-elect=true');
    const calls = (...verbs: string[]) =>
      consumer.plane.auditLog.calls({ user: consumer.konnectorUser, since, verbs }).map(({ resource }) => resource);
    await until('it to watch the Lease', () => calls('list').includes('leases'), patience);
    // A review of its rights stores nothing.
    const writes = calls('create', 'update', 'patch', 'delete').filter((one) => one !== 'selfsubjectrulesreviews');
    assert.deepEqual(writes, []);
    assert.equal(await holder(), 'konnector-of-kube-bind');
    // As client-go releases the Lease.
    await consumer.client.mergePatch(leases, lease, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
    await older.whenReady();
    await stage.bind('kitchen', [kind()]);
    await works('first');
  });

  it('hand over at once when the leader stops gracefully', async () => {
    newer = await start();
    const before = await holder();
    assert.equal(await older.stop(), 0);
    await works('second');
    assert.notEqual(await holder(), before);
    assert.deepEqual(
      stage.calls().filter(({ code }) => code === 403),
      [],
    );
  });

  it('never write both: a replica that was paused beyond its Lease writes nothing more', async () => {
    const { client } = stage.side.consumer;
    const paused = newer;
    await works('renewed');
    const before = await holder();
    older = await start();
    // Writes that were pending at the pause must not happen after it.
    paused.signal('SIGSTOP');
    await client.delete(kind().inConsumer, { name: 'renewed' });
    await client.mergePatch(kind().inConsumer, { name: 'first' }, { spec: { heat: 1 } });
    await until('the other one to lead', async () => (await holder()) !== before, patience);
    await stage.whenObjectGone(kind(), { name: 'renewed' });
    await works('renewed');
    const askedMs = Date.now();
    await client.mergePatch(kind().inConsumer, { name: 'first' }, { spec: { heat: 2 } });
    await stage.whenCopy(kind(), { name: 'first' }, ({ spec }) => own(spec, 'heat') === 2);
    // The API server shows a write before its audit log does.
    const isLogged = (): boolean =>
      stage
        .writes(kind())
        .some(({ name, code, time }) => name === 'first' && code === 200 && Date.parse(time) >= askedMs);
    await until('the write in the audit log', isLogged, patience);
    const uid = (await stage.copy(kind(), { name: 'renewed' }))?.metadata.uid;
    const count = stage.writes(kind()).length;
    paused.signal('SIGCONT');
    const told = async () => /lost|not leading|no longer/i.test(await paused.log());
    await until('the paused one to notice', told, patience);
    await works('last');
    assert.equal((await stage.copy(kind(), { name: 'renewed' }))?.metadata.uid, uid);
    assert.equal(own((await stage.copy(kind(), { name: 'first' }))?.spec, 'heat'), 2);
    const after = stage
      .writes(kind())
      .slice(count)
      .map(({ verb, name, code }) => `${verb} ${name} ${code}`);
    assert.deepEqual(after, ['create last 201']);
    assert.ok(paused.running);
  });

  it('have created every copy once', async () => {
    const made = new Map<string, number>();
    for (const { verb, name, code } of stage.writes(kind())) {
      if (verb === 'create' && code === 201) made.set(name, (made.get(name) ?? 0) + 1);
    }
    assert.deepEqual([...made].sort(), [
      ['first', 1],
      ['last', 1],
      ['renewed', 2],
      ['second', 1],
    ]);
    const object = await stage.side.consumer.get(kind().inConsumer, { name: 'last' });
    assert.deepEqual(object?.metadata.finalizers, [syncerFinalizer]);
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});

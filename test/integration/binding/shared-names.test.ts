import assert from 'node:assert/strict';
import { binder } from '../../../sandbox/binding/provider.ts';
import { clusterNamespaceAnnotation, syncerFinalizer } from '../../../src/api/binding/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingStage, type Side } from '../../support/binding/stage.ts';

/** With isolation None, all consumers and the provider itself share the names of cluster-scoped objects. */
describe('two consumers without isolation', () => {
  let stage: BindingStage;
  let first: Side;
  let second: Side;
  const kind = () => stage.kinds.ovens;
  const create = async (name: string, side: Side): Promise<void> => {
    await stage.create(kind(), { name }, { heat: 100 }, side);
    await stage.whenSynced(kind(), { name }, side);
  };
  const copyOf = (name: string): Promise<KubeObject | undefined> => stage.copy(kind(), { name });
  const ownerOf = async (name: string) => (await copyOf(name))?.metadata.annotations?.[clusterNamespaceAnnotation];
  const deletes = (side: Side): string[] =>
    stage
      .writes(kind(), side)
      .filter(({ verb }) => verb === 'delete')
      .map(({ name }) => name);

  /** Writes of a konnector to objects that the backend watches. The backend answers them by granting the permissions again. */
  const writesToBackend = ({ backend }: Side, since: number) => {
    const user = `system:serviceaccount:${backend.clusterNamespace}:${binder}`;
    const resources = ['apiserviceexports/status', 'apiservicenamespaces', 'boundschemas/status'];
    const verbs = ['create', 'update', 'patch', 'delete'];
    return stage.provider.plane.auditLog.calls({ user, since, resources, verbs });
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ isolation: 'None', informerScope: 'Cluster', consumers: 2 });
    stage.provider.rights = 'last';
    const [one, two] = stage.sides;
    assert.ok(one && two);
    [first, second] = [one, two];
    await Promise.all(stage.sides.map(({ consumer }) => consumer.start()));
    await stage.bind('kitchen', [kind()], { side: first });
    await create('of-first', first);
  });
  after(async () => stage.close());

  it('lose their permissions to each other, report it, and write nothing that triggers the backend', async () => {
    await stage.bind('kitchen', [kind()], { side: second });
    await create('of-second', second);
    const since = stage.provider.plane.auditLog.mark();
    await stage.create(kind(), { name: 'late' }, { heat: 100 }, first);
    // The refused write of the object may come first; the refused watch then takes its place.
    const message = /no longer lets this cluster list and watch ovens\..* \(403\)/;
    await first.consumer.whenCondition('kitchen', 'Connected', 'False', { reason: 'WatchRefused', message });
    await second.consumer.whenCondition('kitchen', 'Ready');
    assert.deepEqual(writesToBackend(first, since), []);
    assert.deepEqual(writesToBackend(second, since), []);
    assert.deepEqual([deletes(first), deletes(second)], [[], []]);
  });

  it('continue within seconds after they have the permissions again, without another change', async () => {
    await stage.provider.bindExportsTo(first.backend.clusterNamespace);
    await stage.whenSynced(kind(), { name: 'late' }, first);
    // The other consumer has lost the permissions now.
    await stage.provider.bindExportsTo(second.backend.clusterNamespace);
    await create('late-too', second);
    stage.provider.rights = 'all';
    await stage.provider.bindExportsTo(first.backend.clusterNamespace);
    await first.consumer.whenCondition('kitchen', 'Ready');
    await second.consumer.whenCondition('kitchen', 'Ready');
  });

  it('retried no more often than a backoff of five seconds allows', () => {
    for (const side of stage.sides) {
      const refused = stage.writes(kind(), side).filter(({ code }) => code === 403);
      assert.ok(refused.length <= 12, `${refused.length} refusals`);
    }
  });

  it('do not change the other’s object of the same name, and report it', async () => {
    await create('same', first);
    await stage.create(kind(), { name: 'same' }, { heat: 5 }, second);
    const condition = await second.consumer.whenCondition('kitchen', 'Connected', 'False', {
      reason: 'ObjectsNotInSync',
    });
    assert.match(
      condition.message ?? '',
      /same: the provider already has an object "same" that is not the copy of this object/,
    );
    assert.equal(own((await copyOf('same'))?.spec, 'heat'), 100);
    await first.consumer.whenCondition('kitchen', 'Ready');
    await second.consumer.client.delete(kind().inConsumer, { name: 'same' });
    await stage.whenObjectGone(kind(), { name: 'same' }, second);
    assert.equal(await ownerOf('same'), first.backend.clusterNamespace);
    assert.deepEqual(deletes(second), []);
  });

  it('keep their own objects when the other restarts, unbinds, or has none', async () => {
    await first.consumer.konnector.kill();
    await first.consumer.start();
    await create('after-restart', first);
    await first.consumer.client.delete(kind().inConsumer, { name: 'of-first' });
    await stage.whenCopyGone(kind(), { name: 'of-first' }, first);
    const all = ['of-second', 'late', 'late-too', 'same', 'after-restart'];
    for (const name of all) assert.ok(await copyOf(name), name);
    assert.deepEqual([deletes(first), deletes(second)], [['of-first'], []]);
    const held = await second.consumer.get(kind().inConsumer, { name: 'of-second' });
    assert.deepEqual(held?.metadata.finalizers, [syncerFinalizer]);
  });
});

import assert from 'node:assert/strict';
import { type FixtureKind, fixtureObject } from '../../../sandbox/binding/fixture-kinds.ts';
import { until } from '../../../sandbox/wait.ts';
import { apiServiceBindings } from '../../../src/api/binding/names.ts';
import type { ObjectName } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import { Fuse } from '../../support/binding/fuse.ts';
import { BindingStage } from '../../support/binding/stage.ts';

/** The test starts a dozen konnectors, each of which takes seconds on a busy machine. */
const patience = { timeoutMs: 150_000, everyMs: 10 };

/** The writes of an object's life, in order. */
const life: [name: string, write: RegExp][] = [
  ['the request for a namespace', /^POST .*\/apiservicenamespaces$/],
  ['the copy', /^POST .*\/namespaces\/kube-bind-.*\/kettles$/],
  ['the finalizer', /^PATCH .*\/namespaces\/point-[^/]*\/kettles\/point-\d$/],
  ['the change of the copy', /^PATCH .*\/namespaces\/kube-bind-.*\/kettles\/point-\d$/],
  ['the status', /^PATCH .*\/namespaces\/point-[^/]*\/kettles\/point-\d\/status$/],
  ['the deletion of the copy', /^DELETE .*\/namespaces\/kube-bind-.*\/kettles\/point-\d$/],
  ['the removal of the finalizer', /^PATCH .*\/namespaces\/point-[^/]*\/kettles\/point-\d$/],
];

/** Whether the process crashes at this write. */
type Last = (write: string) => boolean;

/** Each process crashes at the first write at which fewer than two have crashed. Writes to one path may differ, hence two. */
function eachWrite(): () => Last {
  const ends = new Map<string, number>();
  return () => (write) => {
    const before = ends.get(write) ?? 0;
    if (before < 2) ends.set(write, before + 1);
    return before < 2;
  };
}

function assertEach(found: readonly string[], wanted: readonly RegExp[]): void {
  const missing = wanted.filter((one) => !found.some((write) => one.test(write)));
  assert.deepEqual(missing, [], found.join('\n'));
}

describe('a konnector that crashes', () => {
  let stage: BindingStage;
  let server: string;
  const fuse = new Fuse();
  const kettle = (name: string): ObjectName => ({ namespace: stage.side.namespace, name });
  const oven = (name: string): ObjectName => ({ name });

  const replace = async (): Promise<string> => {
    const write = fuse.blownBy;
    assert.ok(write);
    await stage.side.consumer.konnector.kill();
    fuse.mend();
    await stage.side.consumer.spawnVia(server);
    return write;
  };

  /** Runs `act` with konnectors that crash, while `lives` returns more of them. Returns the last write of each. */
  const dying = async (lives: () => Last | undefined, act: () => Promise<void>): Promise<string[]> => {
    const died: string[] = [];
    let over = false;
    const acting = act().finally(() => {
      over = true;
    });
    acting.catch(() => undefined);
    for (let last = lives(); last; last = lives()) {
      fuse.set(last);
      await until('a write or the end', () => over || fuse.blownBy !== undefined, patience);
      if (fuse.blownBy === undefined) break;
      died.push(await replace());
    }
    await acting;
    // A write after the crash.
    if (fuse.blownBy !== undefined) died.push(await replace());
    fuse.mend();
    return died;
  };

  const nthOfLife = (nth: number): (() => Last | undefined) => {
    let left = nth;
    const last: Last = (write) => /\/(kettles|apiservicenamespaces)(\/|$)/.test(write) && --left === 0;
    return () => (left > 0 ? last : undefined);
  };

  const live = async (name: ObjectName): Promise<void> => {
    const { kettles } = stage.kinds;
    await stage.create(kettles, name);
    await stage.whenSynced(kettles, name);
    await stage.side.consumer.client.mergePatch(kettles.inConsumer, name, { spec: { heat: 200 } });
    await stage.whenCopy(kettles, name, ({ spec }) => own(spec, 'heat') === 200);
    await stage.report(kettles, name, { result: 'hot' });
    await stage.whenObject(kettles, name, ({ status }) => own(status, 'result') === 'hot');
    await stage.side.consumer.client.delete(kettles.inConsumer, name);
    await stage.whenObjectGone(kettles, name);
    assert.equal(await stage.copy(kettles, name), undefined);
  };

  /** Binds, and waits until both sides report the binding. */
  const bind = async (): Promise<void> => {
    const { consumer, backend } = stage.side;
    await consumer.bind('kitchen', await consumer.connect(backend.identity.kubeconfig));
    await consumer.whenCondition('kitchen', 'Ready', 'True', patience);
    const told = (): boolean => {
      const exported = backend.stores.exports.get(`${backend.clusterNamespace}/kitchen`);
      const isTrue = (wanted: string) =>
        exported?.conditions.some(({ type, status }) => type === wanted && status === 'True') ?? false;
      return isTrue('Connected') && isTrue('ConsumerInSync');
    };
    await until('the export to be connected', told, patience);
  };

  const unbind = async (): Promise<void> => {
    const { consumer } = stage.side;
    await consumer.client.delete(apiServiceBindings, { name: 'kitchen' });
    const gone = async () => (await consumer.get(apiServiceBindings, { name: 'kitchen' })) === undefined;
    await until('the binding to be gone', gone, patience);
    for (const { crd } of Object.values(stage.kinds)) {
      assert.equal(await consumer.get(customResourceDefinitions, { name: crd.metadata.name }), undefined);
    }
  };

  /** How often copies of that name were created and deleted. */
  const made = (kind: FixtureKind, name: string): [creates: number, deletes: number] => {
    const done = stage.writes(kind).filter((call) => call.name === name && call.code < 300);
    return [done.filter(({ verb }) => verb === 'create').length, done.filter(({ verb }) => verb === 'delete').length];
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ proxy: fuse.script });
    const { consumer, backend } = stage.side;
    server = (await consumer.plane.proxy(fuse.script)).server;
    const { kettles, ovens } = stage.kinds;
    await backend.export({ name: 'kitchen', kinds: [kettles, ovens] });
    await (await consumer.spawnVia(server)).whenReady();
    await bind();
    await stage.create(kettles, kettle('kept'));
    await stage.create(ovens, oven('kept'));
    await stage.whenSynced(kettles, kettle('kept'));
    await stage.whenSynced(ovens, oven('kept'));
    const theirs = stage.copyName(kettles, kettle('theirs'));
    await stage.provider.client.create(kettles.inProvider, fixtureObject(kettles, theirs));
  });
  after(async () => stage.close());

  for (const [index, [name, write]] of life.entries()) {
    it(`right after ${name} is continued by the next one`, async () => {
      const namespace = await stage.side.consumer.namespace(`point-${index}-${stage.id}`);
      stage.alsoRemove(namespace);
      const point = { namespace, name: `point-${index}` };
      const died = await dying(nthOfLife(index + 1), () => live(point));
      assert.equal(died.length, 1);
      assert.match(died[0] ?? '', write);
      assert.deepEqual(made(stage.kinds.kettles, point.name), [1, 1]);
    });
  }

  it('has changed nothing else meanwhile', async () => {
    const { kettles, ovens } = stage.kinds;
    assert.equal(stage.writes(kettles).filter((call) => call.name === 'kept').length, 1);
    assert.equal(stage.writes(ovens).length, 1);
    assert.ok(await stage.copy(kettles, kettle('kept')));
  });

  it('after each of its writes still unbinds: no object waits forever and no copy remains', async function () {
    this.timeout(180_000);
    const { kettles, ovens } = stage.kinds;
    const died = await dying(eachWrite(), unbind);
    assert.equal(await stage.copy(kettles, kettle('kept')), undefined);
    assert.equal(await stage.copy(ovens, oven('kept')), undefined);
    assert.deepEqual(made(kettles, 'kept'), [1, 1]);
    assert.ok(await stage.copy(kettles, kettle('theirs')));
    assertEach(died, [
      /^DELETE .*\/customresourcedefinitions\/kettles\./,
      /^DELETE .*\/customresourcedefinitions\/ovens\./,
      /^DELETE .*\/kettles\/kept$/,
      /^DELETE .*\/ovens\/kube-bind-.*-kept$/,
      /^PATCH .*\/kettles\/kept$/,
      /^PATCH .*\/ovens\/kept$/,
      /^PATCH .*\/apiservicebindings\/kitchen\/status$/,
      /^PATCH .*\/apiservicebindings\/kitchen$/,
    ]);
  });

  it('after each of its writes still binds', async function () {
    this.timeout(180_000);
    const died = await dying(eachWrite(), bind);
    const crds = died.filter((write) => /^POST .*\/customresourcedefinitions$/.test(write));
    assert.equal(crds.length, 2);
    assertEach(died, [
      /^PATCH .*\/apiservicebindings\/kitchen$/,
      /^PATCH .*\/apiservicebindings\/kitchen\/status$/,
      /^PATCH .*\/apiserviceexports\/kitchen\/status$/,
      /^PATCH .*\/boundschemas\/kettles\..*\/status$/,
      /^PATCH .*\/boundschemas\/ovens\..*\/status$/,
    ]);
    await stage.create(stage.kinds.kettles, kettle('first'));
    await stage.whenSynced(stage.kinds.kettles, kettle('first'));
  });

  it('was never denied a permission', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
    assert.deepEqual(stage.providerRefusals(), []);
  });
});

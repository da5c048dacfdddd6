import assert from 'node:assert/strict';
import { until } from '../../sandbox/wait.ts';
import { apiServiceBindings } from '../../src/api/binding/names.ts';
import type { ObjectName } from '../../src/api/object.ts';
import { customResourceDefinitions } from '../../src/api/resources.ts';
import { own } from '../../src/kit/json-value.ts';
import { Fuse } from '../support/binding/fuse.ts';
import { BindingStage } from '../support/binding/stage.ts';

const patience = { timeoutMs: 60_000, everyMs: 10 };

/** The writes of an object's life, in their order. */
const life = [
  'the request for a namespace',
  'the copy',
  'the finalizer',
  'the change of the copy',
  'the status',
  'the end of the copy',
  'the end of the finalizer',
];

describe('a konnector that dies', () => {
  let stage: BindingStage;
  let server: string;
  const fuse = new Fuse();
  const kind = () => stage.kinds.kettles;

  /** Lets the konnector die while `act` goes on, each time when `fuse` says so, until `fuses` has no more; returns the last writes. */
  const dying = async (fuses: () => boolean, act: () => Promise<void>): Promise<string[]> => {
    const died: string[] = [];
    let over = false;
    const acting = act().finally(() => {
      over = true;
    });
    acting.catch(() => undefined);
    for (let more = fuses(); more; more = fuses()) {
      await until('the end', () => over || fuse.blownBy !== undefined, patience);
      if (fuse.blownBy === undefined) break;
      died.push(fuse.blownBy);
      await stage.side.consumer.konnector.kill();
      fuse.mend();
      await stage.side.consumer.spawnVia(server);
    }
    await acting;
    return died;
  };

  const once = (count: number, counts: (path: string) => boolean) => {
    let used = false;
    return (): boolean => {
      if (used) return false;
      fuse.set(count, counts);
      used = true;
      return true;
    };
  };

  const live = async (name: ObjectName): Promise<void> => {
    await stage.create(kind(), name);
    await stage.whenMarked(kind(), name);
    await stage.side.consumer.client.mergePatch(kind().inConsumer, name, { spec: { heat: 200 } });
    await stage.whenCopy(kind(), name, ({ spec }) => own(spec, 'heat') === 200);
    await stage.report(kind(), name, { result: 'hot' });
    await stage.whenObject(kind(), name, ({ status }) => own(status, 'result') === 'hot');
    await stage.side.consumer.client.delete(kind().inConsumer, name);
    await stage.whenObjectGone(kind(), name);
    assert.equal(await stage.copy(kind(), name), undefined);
  };

  const bind = async (): Promise<void> => {
    const { consumer, backend } = stage.side;
    await consumer.bind('kitchen', await consumer.connect(backend.identity.kubeconfig));
    await consumer.whenCondition('kitchen', 'Ready');
  };

  const unbind = async (): Promise<void> => {
    const { consumer } = stage.side;
    await consumer.client.delete(apiServiceBindings, { name: 'kitchen' });
    const gone = async () => (await consumer.get(apiServiceBindings, { name: 'kitchen' })) === undefined;
    await until('the binding to be gone', gone, patience);
    assert.equal(await consumer.get(customResourceDefinitions, { name: kind().crd.metadata.name }), undefined);
  };

  before(async function () {
    this.timeout(1_200_000);
    stage = await BindingStage.open({ proxy: fuse.script });
    const proxy = await stage.side.consumer.plane.proxy(fuse.script);
    server = proxy.server;
    await stage.side.backend.export({ name: 'kitchen', kinds: [kind()] });
    const konnector = await stage.side.consumer.spawnVia(server);
    await konnector.whenReady();
    await bind();
  });
  after(async () => stage.close());

  for (const [index, write] of life.entries()) {
    it(`right after ${write} is continued by the next one`, async () => {
      const namespace = await stage.side.consumer.namespace(`point-${index}-${stage.id}`);
      stage.alsoRemove(namespace);
      const name = { namespace, name: `point-${index}` };
      const ofLife = (path: string): boolean =>
        path.includes(`/${kind().inProvider.plural}/`) ||
        path.includes(`/${kind().inProvider.plural}?`) ||
        path.endsWith('/apiservicenamespaces');
      const died = await dying(once(index + 1, ofLife), () => live(name));
      assert.equal(died.length, 1);
      const counts = (verb: string): number =>
        stage.writes(kind()).filter((call) => call.verb === verb && call.name === name.name && call.code < 300).length;
      assert.deepEqual([counts('create'), counts('delete')], [1, 1]);
    });
  }

  /** Each life a write longer than the one before it. */
  const everLater = () => {
    let writes = 0;
    return (): boolean => {
      fuse.set(++writes);
      return true;
    };
  };

  it('again and again still unbinds: no object waits for ever and no copy is left behind', async () => {
    const name = { namespace: stage.side.namespace, name: 'last' };
    await stage.create(kind(), name);
    await stage.whenMarked(kind(), name);
    const died = await dying(everLater(), unbind);
    assert.equal(await stage.copy(kind(), name), undefined);
    assert.ok(died.length >= 3, died.join('\n'));
  });

  it('again and again still binds', async () => {
    const died = await dying(everLater(), bind);
    assert.ok(died.length >= 3, died.join('\n'));
    const name = { namespace: stage.side.namespace, name: 'first' };
    await stage.create(kind(), name);
    await stage.whenMarked(kind(), name);
  });

  it('never did what it may not', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});

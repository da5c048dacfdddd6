import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ObjectName } from '../../../../src/api/object.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { SyncStage, type SyncStageOptions, tea, teaCopy } from '../../../support/binding/sync-stage.ts';
import { runs } from '../../../support/runs.ts';
import { SyncWorld } from './sync-world.ts';

type Setting = readonly [SyncStageOptions, readonly ObjectName[], (key: ObjectName) => ObjectName];

const namespaced = ['tea', 'milk'].map((name) => ({ namespace: 'team-a', name }));
const inTeamA = ({ name }: ObjectName): ObjectName => ({ namespace: 'kb-acme-team-a', name });
const clusterScoped = ['tea', 'milk'].map((name) => ({ name }));
const settings: Record<string, Setting> = {
  'namespaces, watched one by one': [{ scope: 'Namespaced', informerScope: 'Namespaced' }, namespaced, inTeamA],
  'namespaces, watched together': [{ scope: 'Namespaced', informerScope: 'Cluster' }, namespaced, inTeamA],
  prefixes: [{ scope: 'Cluster', isolation: 'Prefixed' }, clusterScoped, ({ name }) => ({ name: `kb-acme-${name}` })],
  'no isolation': [{ scope: 'Cluster', isolation: 'None' }, clusterScoped, ({ name }) => ({ name })],
};

const command = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), key: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), key: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('force' as const), key: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hold' as const), key: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('report' as const), key: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('tamper' as const), key: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('removeCopy' as const), key: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('foreign' as const), key: fc.nat(1) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('step' as const), index: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fail' as const), index: fc.nat(5), how: fc.nat(3) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('deliver' as const), index: fc.nat(7), count: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(10, 300, 1e3, 12e3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), lost: fc.boolean() }) },
);

type Command = typeof command extends fc.Arbitrary<infer Value> ? Value : never;

const failures = [
  () => new TransportError('reset', undefined, false),
  () => new ApiError(403, 'Forbidden', 'forbidden'),
  () => new ApiError(409, 'Conflict', 'modified'),
  () => new ApiError(503, 'ServiceUnavailable', 'overloaded'),
];

async function run(setting: Setting, commands: readonly Command[]): Promise<void> {
  const [options, keys, copyOf] = setting;
  const world = new SyncWorld(options, copyOf);
  const keyAt = (index: number): ObjectName => keys[index % keys.length] ?? { name: '' };
  world.stage.start();
  for (const command of commands) {
    switch (command.do) {
      case 'step':
        world.step(command.index);
        break;
      case 'fail':
        world.step(command.index, failures[command.how]?.());
        break;
      case 'deliver':
        world.deliver(command.index, command.count + 1);
        break;
      case 'wait':
        await world.stage.clock.advance(command.ms);
        break;
      case 'crash':
        await world.crash(command.lost);
        break;
      default:
        world[command.do](keyAt(command.key));
    }
    await world.stage.clock.settle();
  }
  await world.calm();
  world.check(keys);
  await world.stage.kill();
}

describe('syncer with random events in random order', () => {
  for (const [title, setting] of Object.entries(settings)) {
    it(`deletes nothing foreign, keeps the finalizer until the copy is gone, and ends in sync: ${title}`, async function () {
      this.timeout(60_000);
      await fc.assert(
        fc.asyncProperty(fc.array(command, { minLength: 40, maxLength: 120, size: 'max' }), (commands) =>
          run(setting, commands),
        ),
        { numRuns: runs(200), seed: 15 },
      );
    });
  }
});

describe('syncer that crashes at a write', () => {
  /** Runs the whole life of an object with a crash at the `n`th write. Resolves to whether there was such a write. */
  async function live(n: number, when: 'before' | 'after'): Promise<boolean> {
    const stage = new SyncStage();
    const died = new Error('died');
    let writes = 0;
    let dead = false;
    const die = async (): Promise<void> => {
      if (dead) throw died;
      if (++writes !== n) return;
      dead = true;
      throw died;
    };
    for (const cluster of [stage.consumer, stage.provider]) {
      cluster.fault = async ({ verb }) => {
        if (dead) throw died;
        if (when === 'before' && verb !== 'get' && verb !== 'list') await die();
      };
      cluster.answered = () => (when === 'after' ? die() : undefined);
    }
    const settle = async (): Promise<void> => {
      await stage.settle();
      if (!dead || n === 0) return;
      await stage.kill();
      [dead, writes] = [false, Number.NEGATIVE_INFINITY];
      stage.start();
      await stage.settle();
    };
    stage.start();
    stage.put(tea);
    await settle();
    stage.answerNamespace('team-a');
    await settle();
    assert.ok(stage.object(tea)?.metadata.finalizers?.length);
    stage.put(tea, { ...stage.object(tea), spec: { litres: 3 } });
    await settle();
    assert.deepEqual(stage.copy(teaCopy)?.spec, { litres: 3 });
    stage.report(teaCopy, { hot: true });
    await settle();
    assert.deepEqual(stage.object(tea)?.status, { hot: true });
    const object = stage.object(tea);
    stage.put(tea, { ...object, metadata: { ...object?.metadata, ...tea, deletionTimestamp: '2026-11-21T09:00:00Z' } });
    await settle();
    assert.deepEqual([stage.object(tea), stage.copy(teaCopy)], [undefined, undefined]);
    await stage.kill();
    return writes < 0;
  }

  for (const when of ['before', 'after'] as const) {
    it(`is replaced by one that completes the sync: ${when} each of its writes`, async () => {
      let n = 1;
      while (await live(n, when)) n++;
      assert.equal(n - 1, 7, 'namespace, copy, mark, update, status, delete, finalizer');
    });
  }
});

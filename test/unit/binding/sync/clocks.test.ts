import assert from 'node:assert/strict';
import { SyncStage } from '../../../support/binding/sync-stage.ts';

const yearMs = 365 * 24 * 3_600_000;
const key = (name: string) => ({ namespace: 'team-a', name });
const copyKey = (name: string) => ({ namespace: 'kb-acme-team-a', name });

describe('clusters whose clocks differ', () => {
  let stage: SyncStage;
  afterEach(() => stage.kill());
  const left = (): string[] => stage.provider.list(stage.kettles.provider).map(({ metadata }) => metadata.name);

  for (const [what, aheadMs] of [
    ['by a year, the provider being ahead', yearMs],
    ['by a year, the provider being behind', -yearMs],
    ['by a second, the provider being ahead', 1000],
    ['by a second, the provider being behind', -1000],
  ] as const) {
    it(`delete the same objects: ${what}`, async () => {
      stage = new SyncStage({ aheadMs });
      stage.answerNamespace('team-a');
      stage.start();
      for (const name of ['earlier', 'kept']) stage.put(key(name));
      await stage.settle();
      await stage.kill();
      // After an unbinding with policy Orphan and a new binding, the definition is as young as the binding.
      stage.bind('uid-of-later-binding');
      for (const name of ['earlier', 'kept']) stage.consumer.drop(stage.kettles.consumer, key(name));
      stage.start();
      for (const name of ['kept', 'lost', 'deleted']) stage.put(key(name));
      await stage.settle();
      await stage.kill();
      stage.consumer.drop(stage.kettles.consumer, key('lost'));
      stage.start();
      await stage.remove(key('deleted'));
      stage.put(key('kept'), { ...stage.object(key('kept')), spec: { litres: 5 } });
      stage.report(copyKey('kept'), { hot: true });
      await stage.settle();
      assert.deepEqual(left().sort(), ['earlier', 'kept']);
      assert.deepEqual(stage.copy(copyKey('kept'))?.spec, { litres: 5 });
      assert.deepEqual(stage.object(key('kept'))?.status, { hot: true });
    });
  }
});

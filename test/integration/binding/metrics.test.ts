import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingStage } from '../../support/binding/stage.ts';

describe('the metrics of a konnector', () => {
  let stage: BindingStage;
  const binding = 'kitchen';
  const objects = 3;

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open();
    const { kettles } = stage.kinds;
    await stage.side.consumer.start();
    await stage.bind(binding, [kettles]);
    for (let index = 0; index < objects; index++) {
      const name = { namespace: stage.side.namespace, name: `kettle-${index}` };
      await stage.create(kettles, name);
      await stage.whenSynced(kettles, name);
      await stage.report(kettles, name, { result: 'hot' });
      await stage.whenObject(kettles, name, ({ status }) => own(status, 'result') === 'hot');
    }
  });
  after(() => stage.close());

  it('come with no warning in the log after a first bind', async () => {
    const lines = (await stage.side.consumer.konnector.log()).split('\n');
    assert.deepEqual(
      lines.filter((line) => / WARN /.test(line)),
      [],
    );
  });

  const resource = (): string => stage.kinds.kettles.crd.metadata.name;

  /** The sum of the series of a metric with these labels; undefined without any. */
  const value = async (name: string, labels: Record<string, string>): Promise<number | undefined> => {
    const answer = await fetch(`http://127.0.0.1:${stage.side.consumer.konnector.metricsPort}/metrics`);
    const wanted = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    const found = (await answer.text())
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) && wanted.every((one) => line.includes(one)));
    return found.length === 0
      ? undefined
      : found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  };

  const expected: [name: string, labels: () => Record<string, string>, min: number, max: number][] = [
    ['drawbridge_binding_sync_up_seconds_count', () => ({ resource: resource() }), objects, objects],
    ['drawbridge_binding_watch_age_seconds', () => ({ resource: resource(), side: 'provider' }), 0, 60],
    ['drawbridge_binding_heartbeat_age_seconds', () => ({}), 0, 300],
    ['drawbridge_binding_objects', () => ({ binding, resource: resource(), side: 'provider' }), objects, objects],
    ['workqueue_adds_total', () => ({ controller: `sync/${binding}/${resource()}` }), objects, 100],
  ];
  for (const [name, labels, min, max] of expected) {
    it(`include ${name}`, async () => {
      const sane = async (): Promise<boolean> => {
        const found = await value(name, labels());
        return found !== undefined && found >= min && found <= max;
      };
      await until(`${name} between ${min} and ${max}`, sane, { timeoutMs: 30_000 }).catch(async (error: Error) => {
        assert.fail(`${error.message}; found ${await value(name, labels())}`);
      });
    });
  }
});

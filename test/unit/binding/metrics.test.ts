import assert from 'node:assert/strict';
import { bindingMetrics } from '../../../src/binding/metrics.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';

describe('metrics of bindings', () => {
  const all = createMetrics();
  const metrics = bindingMetrics(all);
  const value = async (series: string): Promise<string | undefined> =>
    (await all.expose())
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1);

  it('are registered once for all callers', () => assert.equal(bindingMetrics(all), metrics));

  it('show latencies, conflicts, and repairs', async () => {
    const observer = metrics.observer('kettles.kitchen.example');
    observer.up(0.02);
    observer.up(2);
    observer.down(0.2);
    observer.conflict('consumer');
    observer.repaired();
    const labels = 'resource="kettles.kitchen.example"';
    assert.equal(await value(`drawbridge_binding_sync_up_seconds_sum{${labels}}`), '2.02');
    assert.equal(await value(`drawbridge_binding_sync_up_seconds_bucket{le="0.025",${labels}}`), '1');
    assert.equal(await value(`drawbridge_binding_sync_down_seconds_count{${labels}}`), '1');
    assert.equal(await value(`drawbridge_binding_conflicts_total{${labels},side="consumer"}`), '1');
    assert.equal(await value(`drawbridge_binding_repairs_total{${labels}}`), '1');
  });

  it('show the highest age of several watches until the last one ends', async () => {
    const labels = { session: 'a1', side: 'provider', resource: 'secrets' } as const;
    const series = 'drawbridge_binding_watch_age_seconds{session="a1",side="provider",resource="secrets"}';
    const stops = [1500, 4000].map((ms) => metrics.registerWatchAge(labels, () => ms));
    assert.equal(await value(series), '4');
    stops[1]?.();
    assert.equal(await value(series), '1.5');
    stops[0]?.();
    assert.equal(await value(series), undefined);
  });

  it('show the heartbeat age of each session that has sent one', async () => {
    const ages = [{ session: 'a1', ageMs: 150_000 }];
    metrics.registerHeartbeatAges(() => ages);
    assert.equal(await value('drawbridge_binding_heartbeat_age_seconds{session="a1"}'), '150');
    ages[0] = { session: 'b2', ageMs: 1000 };
    assert.equal(await value('drawbridge_binding_heartbeat_age_seconds{session="a1"}'), undefined);
    assert.equal(await value('drawbridge_binding_heartbeat_age_seconds{session="b2"}'), '1');
  });

  it('add up the objects of a binding', async () => {
    const labels = { binding: 'kettles', resource: 'kettles.kitchen.example', side: 'consumer' } as const;
    const stops = [3, 4].map((count) => metrics.registerObjectCount(labels, () => count));
    const series = 'drawbridge_binding_objects{binding="kettles",resource="kettles.kitchen.example",side="consumer"}';
    assert.equal(await value(series), '7');
    for (const stop of stops) stop();
    assert.equal(await value(series), undefined);
  });
});

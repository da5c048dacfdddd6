import assert from 'node:assert/strict';
import { createMetrics, createProcessMetrics } from '../../../src/observe/metrics.ts';

describe('createProcessMetrics', () => {
  it('exposes the usual metrics of a process beside its own', async () => {
    const metrics = createProcessMetrics();
    metrics.controller('expiry');
    const text = await metrics.expose();
    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_seconds', 'workqueue_depth']) {
      assert.match(text, new RegExp(`^# TYPE ${name} `, 'm'));
    }
  });
});

describe('createMetrics', () => {
  it("exposes controllers with controller-runtime's names and labels", async () => {
    const metrics = createMetrics();
    const loop = metrics.controller('expiry');
    loop.added();
    loop.depth(4);
    loop.waited(0.2);
    loop.retried();
    loop.active(2);
    loop.reconciled('error', 0.3);
    loop.reconciled('success', 0.1);
    const lines = (await metrics.expose()).split('\n');
    for (const line of [
      'controller_runtime_reconcile_total{controller="expiry",result="error"} 1',
      'controller_runtime_reconcile_total{controller="expiry",result="success"} 1',
      'controller_runtime_reconcile_total{controller="expiry",result="requeue_after"} 0',
      'controller_runtime_reconcile_errors_total{controller="expiry"} 1',
      'controller_runtime_terminal_reconcile_errors_total{controller="expiry"} 0',
      'controller_runtime_reconcile_time_seconds_count{controller="expiry"} 2',
      'controller_runtime_active_workers{controller="expiry"} 2',
      'workqueue_depth{name="expiry",controller="expiry"} 4',
      'workqueue_adds_total{name="expiry",controller="expiry"} 1',
      'workqueue_retries_total{name="expiry",controller="expiry"} 1',
      'workqueue_queue_duration_seconds_sum{name="expiry",controller="expiry"} 0.2',
    ]) {
      assert.ok(lines.includes(line), `missing: ${line}`);
    }
    assert.match(metrics.contentType, /^text\/plain/);
  });

  it('exposes a controller before its first reconcile', async () => {
    const metrics = createMetrics();
    metrics.controller('quiet');
    assert.match(await metrics.expose(), /controller_runtime_reconcile_errors_total\{controller="quiet"\} 0/);
  });

  it('registers metrics of other parts', async () => {
    const metrics = createMetrics();
    metrics.counter({ name: 'audit_dropped_total', help: 'h' }).inc();
    metrics.gauge({ name: 'cert_expiry_seconds', help: 'h', labels: ['name'] }).set({ name: 'serving' }, 60);
    metrics
      .histogram({ name: 'admission_seconds', help: 'h', labels: ['path'], buckets: [0.1, 1] })
      .observe({ path: '/x' }, 0.5);
    const text = await metrics.expose();
    assert.match(text, /audit_dropped_total 1/);
    assert.match(text, /cert_expiry_seconds\{name="serving"\} 60/);
    assert.match(text, /admission_seconds_bucket\{le="1",path="\/x"\} 1/);
  });

  it('has at most a thousand series for each metric, and one more for all others', async () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: 'many_total', help: 'h', labels: ['a', 'b'] });
    const gauge = metrics.gauge({ name: 'many', help: 'h', labels: ['a'] });
    const histogram = metrics.histogram({ name: 'many_seconds', help: 'h', labels: ['a'], buckets: [1] });
    metrics.collected({ name: 'many_collected', help: 'h', labels: ['a'] }, (set) => {
      for (let index = 0; index < 1_500; index++) set({ a: `${index}` }, 1);
    });
    for (let index = 0; index < 1_500; index++) {
      counter.inc({ a: `${index}`, b: 'x' });
      gauge.set({ a: `${index}` }, 1);
      histogram.observe({ a: `${index}` }, 0.5);
    }
    counter.inc({ a: '999', b: 'x' });
    const lines = (await metrics.expose()).split('\n');
    const count = (start: string): number => lines.filter((line) => line.startsWith(start)).length;
    assert.deepEqual(
      ['many_total{', 'many{', 'many_seconds_count{', 'many_collected{'].map(count),
      [1001, 1000, 1001, 1000],
    );
    assert.ok(lines.includes('many_total{a="other",b="other"} 500'));
    assert.ok(lines.includes('many_total{a="999",b="x"} 2'));
    assert.ok(lines.includes('many_seconds_count{a="other"} 500'));
  });

  it('exposes no value that a scrape did not collect', async () => {
    const metrics = createMetrics();
    let led = true;
    metrics.collected({ name: 'of_the_leader', help: 'h', labels: [] }, (set) => {
      if (led) set({}, 1);
    });
    assert.match(await metrics.expose(), /^of_the_leader 1$/m);
    led = false;
    assert.doesNotMatch(await metrics.expose(), /^of_the_leader /m);
  });

  it('separates two registries', async () => {
    createMetrics().counter({ name: 'only_here_total', help: 'h' }).inc();
    assert.doesNotMatch(await createMetrics().expose(), /only_here_total/);
  });
});

import assert from 'node:assert/strict';
import { Health, livenessAt, readinessAt } from '../../../src/observe/health.ts';

describe('Health', () => {
  it('is healthy without checks', () => {
    assert.deepEqual(new Health().readiness(), { healthy: true, checks: [] });
  });

  it('names each check and its problem', () => {
    const health = new Health();
    health.addCheck('stores', () => 'pods: 40 s old');
    health.addCheck('certificate', () => undefined);
    assert.deepEqual(health.readiness(), {
      healthy: false,
      checks: [{ name: 'stores', problem: 'pods: 40 s old' }, { name: 'certificate' }],
    });
  });

  it('shows a warning without failing', () => {
    const health = new Health();
    health.addCheck('stores', () => ({ warning: 'pods: refused' }));
    const checks = [{ name: 'stores', warning: 'pods: refused' }];
    assert.deepEqual(health.readiness(), { healthy: true, checks });
    const shown = [{ name: 'event-loop' }, ...checks];
    assert.deepEqual(readinessAt(0, health.readiness()), { healthy: true, checks: shown });
  });

  it('counts a check that throws as failed', () => {
    const health = new Health();
    health.addCheck('broken', () => {
      throw new Error('bug');
    });
    assert.match(health.readiness().checks[0]?.problem ?? '', /bug/);
  });

  it('removes a check, unless another one has its name by then', () => {
    const health = new Health();
    const remove = health.addCheck('x', () => 'old');
    const removeNew = health.addCheck('x', () => 'new');
    remove();
    assert.equal(health.readiness().checks[0]?.problem, 'new');
    removeNew();
    assert.equal(health.readiness().healthy, true);
  });
});

describe('probes of the event loop', () => {
  const ready = new Health().readiness();
  const unready = { healthy: false, checks: [{ name: 'stores', problem: 'pods: 40 s old' }] };

  it('repeat the last readiness while it is at most 1 s old', () => {
    assert.deepEqual(readinessAt(1_000, ready), { healthy: true, checks: [{ name: 'event-loop' }] });
    assert.deepEqual(readinessAt(0, unready), { healthy: false, checks: [{ name: 'event-loop' }, ...unready.checks] });
  });

  it('fail readiness after 1 s without a report, and liveness after 5 s', () => {
    const blocked = (problem: string) => ({ healthy: false, checks: [{ name: 'event-loop', problem }] });
    assert.deepEqual(readinessAt(1_001, ready), blocked('blocked for 1.0 s; at most 1 s'));
    assert.deepEqual(livenessAt(5_000), { healthy: true, checks: [{ name: 'event-loop' }] });
    assert.deepEqual(livenessAt(5_100), blocked('blocked for 5.1 s; at most 5 s'));
  });
});

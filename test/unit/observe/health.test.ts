import assert from 'node:assert/strict';
import { Health } from '../../../src/observe/health.ts';

describe('Health', () => {
  it('is healthy without checks', () => {
    assert.deepEqual(new Health().readiness(), { healthy: true, checks: [] });
  });

  it('names each check and its problem, and separates readiness and liveness', () => {
    const health = new Health();
    health.ready('stores', () => 'pods: 40 s old');
    health.ready('certificate', () => undefined);
    health.live('loop', () => undefined);
    assert.deepEqual(health.readiness(), {
      healthy: false,
      checks: [{ name: 'stores', problem: 'pods: 40 s old' }, { name: 'certificate' }],
    });
    assert.equal(health.liveness().healthy, true);
  });

  it('counts a check that throws as failed', () => {
    const health = new Health();
    health.live('broken', () => {
      throw new Error('bug');
    });
    assert.match(health.liveness().checks[0]?.problem ?? '', /bug/);
  });

  it('removes a check, unless another one has its name by then', () => {
    const health = new Health();
    const remove = health.ready('x', () => 'old');
    const removeNew = health.ready('x', () => 'new');
    remove();
    assert.equal(health.readiness().checks[0]?.problem, 'new');
    removeNew();
    assert.equal(health.readiness().healthy, true);
  });
});

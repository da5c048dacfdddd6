import assert from 'node:assert/strict';
import { runSchedule } from '../../../support/inventory/schedule.ts';
import { chooseSeed } from '../../../support/random.ts';

const schedules = Number(process.env['RUNS'] ?? 10_000);
const seed = chooseSeed();

describe(`the core of the inventory, over ${schedules} random schedules from DRAWBRIDGE_SEED=${seed}`, () => {
  it('keeps every invariant and comes to rest as it should', function () {
    this.timeout(60_000 + schedules * 20);
    let [runs, rejected, deleted, takeovers] = [0, 0, 0, 0];
    for (let i = 0; i < schedules; i += 1) {
      try {
        const report = runSchedule(seed + i);
        runs += report.runs;
        rejected += report.rejected;
        deleted += report.deleted;
        takeovers += report.takeovers - 1;
      } catch (error) {
        throw new Error(`DRAWBRIDGE_SEED=${seed + i} RUNS=1 repeats it`, { cause: error });
      }
    }
    // Schedules in which nothing happens prove nothing.
    if (schedules < 1000) return;
    assert.ok(runs > 5 * schedules, `${runs} runs`);
    assert.ok(rejected > schedules / 20, `the fence refused ${rejected} writes`);
    assert.ok(deleted > schedules / 10, `${deleted} deletions`);
    assert.ok(takeovers > schedules / 10, `${takeovers} takeovers`);
  });
});

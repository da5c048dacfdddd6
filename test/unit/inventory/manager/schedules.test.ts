import assert from 'node:assert/strict';
import { runSchedule } from '../../../support/inventory/schedule.ts';
import { chooseSeed } from '../../../support/random.ts';
import { runs as cases } from '../../../support/runs.ts';

/** `make faults` runs 2,000 of them. */
const schedules = Number(process.env['RUNS'] ?? cases(200, 10));
/** Fixed seed unless DRAWBRIDGE_SEED is set. */
const seed = chooseSeed(20261122);

/** Minimum number of occurrences per schedule, so that the schedules test them. */
const atLeast: Readonly<Record<string, number>> = {
  takeover: 1.1,
  delete: 0.1,
  abandon: 0.02,
  disable: 0.1,
  enlarge: 0.1,
  suspend: 0.1,
  register: 0.1,
  remote: 0.2,
  rotate: 0.1,
  jump: 0.1,
  poisoned: 0.1,
  rejected: 0.05,
  'report 200': 0.5,
  'report 409': 0.05,
  'I7: an expired token is no failure': 0.005,
  'I16: an unavailable authorization is no failure': 0.02,
  'I17: rotation is no failure': 0.01,
};

/** With fewer schedules, rare events may be absent by chance. */
const enough = 500;

describe(`a manager, over ${schedules} random schedules from DRAWBRIDGE_SEED=${seed}`, () => {
  const backoffs = { sum: 0, count: 0 };
  const happened = new Map<string, number>();

  it('keeps every invariant and converges', async function () {
    this.timeout(60_000 + schedules * 500);
    let runs = 0;
    for (let i = 0; i < schedules; i += 1) {
      try {
        const report = await runSchedule(seed + i);
        runs += report.runs;
        backoffs.sum += report.backoffs.sum;
        backoffs.count += report.backoffs.count;
        for (const [what, times] of report.happened) happened.set(what, (happened.get(what) ?? 0) + times);
      } catch (error) {
        throw new Error(`DRAWBRIDGE_SEED=${seed + i} RUNS=1 repeats it`, { cause: error });
      }
    }
    // Schedules without events prove nothing.
    assert.ok(runs > 5 * schedules, `${runs} runs`);
  });

  if (schedules < enough) return;

  for (const [what, share] of Object.entries(atLeast)) {
    it(`covers ${what} often enough`, () => {
      const times = happened.get(what) ?? 0;
      assert.ok(times >= Math.floor(share * schedules), `${times} times`);
    });
  }

  it('spreads retries over their backoff (I2)', () => {
    const mean = backoffs.sum / backoffs.count;
    // Three standard deviations.
    const slack = 0.9 / Math.sqrt(backoffs.count);
    assert.ok(Math.abs(mean - 0.5) < slack, `at ${mean} of it`);
  });
});

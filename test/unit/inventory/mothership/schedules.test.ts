import assert from 'node:assert/strict';
import { runSchedule } from '../../../support/inventory/schedule.ts';
import { chooseSeed } from '../../../support/random.ts';

/** `make faults` plays more of them, from a new seed. */
const schedules = Number(process.env['RUNS'] ?? 60);
/** The same ones each time, unless DRAWBRIDGE_SEED says another. */
const seed = chooseSeed(20261122);

/** How often something has to be in so many schedules, for these to say anything about it. */
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
  'I7: the end of a token is no failure': 0.005,
  'I16: what the fence cannot answer is no failure': 0.02,
  'I17: rotation is no failure': 0.01,
};

describe(`a mothership, over ${schedules} random schedules from DRAWBRIDGE_SEED=${seed}`, () => {
  it('keeps every invariant and comes to rest as it should', async function () {
    this.timeout(60_000 + schedules * 500);
    let runs = 0;
    const backoffs = { sum: 0, count: 0 };
    const happened = new Map<string, number>();
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
    // Schedules in which nothing happens prove nothing.
    assert.ok(runs > 5 * schedules, `${runs} runs`);
    if (schedules < 500) return;
    for (const [what, share] of Object.entries(atLeast)) {
      // Whether so rare an event is in so few schedules is chance; `make faults` plays enough of them.
      if (share * schedules < 2) continue;
      assert.ok(
        (happened.get(what) ?? 0) >= Math.max(1, Math.floor(share * schedules)),
        `${what}: ${happened.get(what)} times`,
      );
    }
    const mean = backoffs.sum / backoffs.count;
    // Three standard deviations.
    const slack = 0.9 / Math.sqrt(backoffs.count);
    assert.ok(Math.abs(mean - 0.5) < slack, `I2: retries are not spread over their back-off, but at ${mean} of it`);
  });
});

import { runSchedule } from '../../../support/inventory/schedule.ts';
import { chooseSeed } from '../../../support/random.ts';

const schedules = Number(process.env['RUNS'] ?? 10_000);

describe(`the core of the inventory, over ${schedules} random schedules`, () => {
  it('keeps every invariant and comes to rest as it should', function () {
    this.timeout(schedules * 20);
    const seed = chooseSeed();
    for (let i = 0; i < schedules; i += 1) {
      try {
        runSchedule(seed + i);
      } catch (error) {
        throw new Error(`DRAWBRIDGE_SEED=${seed + i} RUNS=1 repeats it`, { cause: error });
      }
    }
  });
});

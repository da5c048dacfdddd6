import assert from 'node:assert/strict';
import { History } from '../../../support/inventory/history.ts';
import { chooseSeed, seededRandom } from '../../../support/random.ts';

const schedules = Number(process.env['RUNS'] ?? 250);
/** The same ones each time: new ones are for `make faults`. */
const seed = chooseSeed(20261121);
const acts = 8;

/** How often something has to be in so many histories, for these to say anything about it. */
const atLeast = { calls: 5, refused: 0.01, remotes: 0.2, poisoned: 0.5 };

async function play(number: number): Promise<History> {
  const history = new History(seededRandom(number));
  try {
    for (let i = 0; i < acts; i += 1) await history.act();
    await history.settle();
    history.check();
    if (number % 4 === 0) await history.checkDeletion();
  } catch (error) {
    throw new Error(`DRAWBRIDGE_SEED=${number} RUNS=1 repeats it`, { cause: error });
  } finally {
    await history.end();
  }
  return history;
}

describe(`mothership, over ${schedules} random histories from DRAWBRIDGE_SEED=${seed}`, () => {
  it('settles on the right state, with one call a run, whatever happens', async function () {
    this.timeout(600_000);
    const seen = { calls: 0, refused: 0, remotes: 0, poisoned: 0 };
    for (let i = 0; i < schedules; i += 1) {
      const history = await play(seed + i);
      for (const what of ['calls', 'refused', 'remotes', 'poisoned'] as const) seen[what] += history.seen[what];
    }
    // Histories in which nothing happens prove nothing.
    if (schedules < 100) return;
    for (const [what, share] of Object.entries(atLeast)) {
      const times = seen[what as keyof typeof atLeast];
      assert.ok(times > share * schedules, `${what}: ${times} times`);
    }
  });
});

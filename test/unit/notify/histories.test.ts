import assert from 'node:assert/strict';
import { runHistory } from '../../support/notify/history.ts';
import { chooseSeed } from '../../support/random.ts';
import { runs as cases } from '../../support/runs.ts';

/** `make faults` runs 2,000 of them. */
const histories = Number(process.env['RUNS'] ?? cases(2000, 5));
/** Fixed seed unless DRAWBRIDGE_SEED is set. */
const seed = chooseSeed(20261201);

const atLeastOnce = ['takeover', 'crash at send', 'crash at written', 'Lease lost', 'shutdown', 'digest', 'told twice'];

describe(`notifications, over ${histories} random histories from DRAWBRIDGE_SEED=${seed}`, () => {
  const happened = new Map<string, number>();

  it('tells each fact at least once, in time, and no request is written', async function () {
    this.timeout(60_000 + histories * 2_000);
    let told = 0;
    for (let i = 0; i < histories; i += 1) {
      try {
        const report = await runHistory(seed + i);
        told += report.told;
        for (const [what, times] of report.happened) happened.set(what, (happened.get(what) ?? 0) + times);
      } catch (error) {
        throw new Error(`DRAWBRIDGE_SEED=${seed + i} RUNS=1 repeats it`, { cause: error });
      }
    }
    // Histories without messages prove nothing.
    assert.ok(told > 10 * histories, `${told} messages`);
  });

  for (const what of atLeastOnce) {
    it(`covers ${what}`, () => assert.ok((happened.get(what) ?? 0) >= histories / 10));
  }
});

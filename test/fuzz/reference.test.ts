import assert from 'node:assert/strict';
import fc from 'fast-check';
import { runs } from '../support/runs.ts';
import { Judge } from './judge.ts';
import { fuzzCase } from './reviews.ts';

describe('fuzz: admission compared with a reference policy', function () {
  this.timeout(60_000);

  it('answers every input, and allows nothing that the reference policy denies', async () => {
    const judge = new Judge();
    const { tally } = judge;
    await fc.assert(
      fc.asyncProperty(fuzzCase, (one) => judge.judge(one)),
      { seed: 6, numRuns: runs(3000, 300) },
    );
    // Otherwise the comparison proves nothing.
    assert.ok(
      tally.allowed > runs(300) && tally.refused > runs(300) && tally.malformed > runs(100),
      JSON.stringify(tally),
    );
    assert.ok(tally.reasons.size > 15, [...tally.reasons.keys()].join());
  });
});

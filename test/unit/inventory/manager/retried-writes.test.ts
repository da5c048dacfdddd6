import assert from 'node:assert/strict';
import { withRetries } from '../../../../src/inventory/manager/retried-writes.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

describe('a write that must not be lost', () => {
  it('is retried within half a minute despite a longer Retry-After', async () => {
    const clock = new SimulatedClock();
    let tries = 0;
    const { signal } = new AbortController();
    const going = withRetries({ clock, random: () => 0.5, log: noLog }, 'storing', signal, async () => {
      tries += 1;
      if (tries === 1) throw new ApiError(429, 'TooManyRequests', 'later', 3_600_000);
      return tries;
    });
    await clock.advance(29_000);
    assert.equal(tries, 1);
    await clock.advance(2_000);
    assert.equal(await going, 2);
  });
});

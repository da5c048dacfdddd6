import assert from 'node:assert/strict';
import fc from 'fast-check';
import { RequestDeadline } from '../../../../src/access/lifecycle/request-deadlines.ts';
import { createdAtMs } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const until = createdAtMs + 30 * minuteMs;

describe('the end of a grant', () => {
  const setUp = (): { clock: SimulatedClock; deadline: RequestDeadline; over: () => boolean } => {
    const clock = new SimulatedClock(createdAtMs);
    const deadline = new RequestDeadline(clock);
    return { clock, deadline, over: () => deadline.nowMs(createdAtMs) >= until };
  };

  it('is its deadline, to the millisecond', async () => {
    const { clock, over } = setUp();
    assert.equal(over(), false);
    await clock.advance(30 * minuteMs - 1);
    assert.equal(over(), false);
    await clock.advance(1);
    assert.equal(over(), true);
  });

  it('is immediate if the wall clock jumps past the deadline', () => {
    const { clock, over } = setUp();
    assert.equal(over(), false);
    clock.setWall(createdAtMs + dayMs);
    assert.equal(over(), true);
  });

  it('does not move if the wall clock is set back', async () => {
    const { clock, over } = setUp();
    assert.equal(over(), false);
    await clock.advance(10 * minuteMs);
    clock.setWall(createdAtMs - hourMs);
    await clock.advance(20 * minuteMs - 1);
    assert.equal(over(), false);
    await clock.advance(1);
    assert.equal(over(), true);
  });

  it('is at most the granted time after the first observation, even if the clock was behind at creation', async () => {
    const { clock, over } = setUp();
    clock.setWall(createdAtMs - dayMs);
    assert.equal(over(), false);
    await clock.advance(30 * minuteMs);
    assert.equal(over(), true);
  });

  it('is immediate if the deadline passed before the first observation', () => {
    const { clock, over } = setUp();
    clock.setWall(until + hourMs);
    assert.equal(over(), true);
  });

  it('includes the elapsed time when a decision replaces the provisional deadline', async () => {
    const { clock, deadline, over } = setUp();
    assert.equal(deadline.nowMs(createdAtMs) >= createdAtMs + hourMs, false);
    await clock.advance(20 * minuteMs);
    assert.equal(over(), false);
    clock.setWall(createdAtMs);
    await clock.advance(10 * minuteMs);
    assert.equal(over(), true);
  });

  it('is checked next at the deadline, or earlier by the monotonic clock', async () => {
    const { clock, deadline } = setUp();
    const next = (): number => deadline.nextCheckMs(createdAtMs, until);
    assert.equal(next(), until);
    await clock.advance(10 * minuteMs);
    clock.setWall(createdAtMs - hourMs);
    assert.equal(next(), createdAtMs - hourMs + 20 * minuteMs);
    clock.setWall(createdAtMs + dayMs);
    assert.equal(next(), until);
  });

  it('is measured anew from another start', async () => {
    const { clock, deadline, over } = setUp();
    over();
    await clock.advance(20 * minuteMs);
    clock.setWall(createdAtMs);
    assert.equal(deadline.nextCheckMs(createdAtMs, until), createdAtMs + 10 * minuteMs);
    assert.equal(deadline.nextCheckMs(createdAtMs - 1, until), until);
  });

  it('is never later than the granted time after the first observation, whatever the wall clock does', async () => {
    const step = fc.record({
      passMs: fc.integer({ min: 0, max: 20 * minuteMs }),
      wallMs: fc.integer({ min: -dayMs, max: dayMs }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { clock, over } = setUp();
        over();
        for (const { passMs, wallMs } of steps) {
          await clock.advance(passMs);
          clock.setWall(createdAtMs + wallMs);
          if (clock.monotonic() >= 30 * minuteMs) assert.equal(over(), true);
          else assert.equal(over(), clock.now() >= until);
        }
      }),
      { seed: 7, numRuns: 200 },
    );
  });
});

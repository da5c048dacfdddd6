import assert from 'node:assert/strict';
import fc from 'fast-check';
import { GrantDeadlines } from '../../../../src/access/lifecycle/grant-deadline.ts';
import { createdAtMs } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const until = createdAtMs + 30 * minuteMs;

describe('when a grant is over', () => {
  const setUp = (): { clock: SimulatedClock; deadlines: GrantDeadlines; over: () => boolean } => {
    const clock = new SimulatedClock(createdAtMs);
    const deadlines = new GrantDeadlines(clock);
    return { clock, deadlines, over: () => deadlines.hasPassed('r-1', createdAtMs, until) };
  };

  it('is at its deadline, to the millisecond', async () => {
    const { clock, over } = setUp();
    assert.equal(over(), false);
    await clock.advance(30 * minuteMs - 1);
    assert.equal(over(), false);
    await clock.advance(1);
    assert.equal(over(), true);
  });

  it('is at once when the wall clock jumps past the deadline', () => {
    const { clock, over } = setUp();
    assert.equal(over(), false);
    clock.setWall(createdAtMs + dayMs);
    assert.equal(over(), true);
  });

  it('does not move when the wall clock is set back', async () => {
    const { clock, over } = setUp();
    assert.equal(over(), false);
    await clock.advance(10 * minuteMs);
    clock.setWall(createdAtMs - hourMs);
    await clock.advance(20 * minuteMs - 1);
    assert.equal(over(), false);
    await clock.advance(1);
    assert.equal(over(), true);
  });

  it('is no later than the granted time after first sight, when the clock was already behind at creation', async () => {
    const { clock, over } = setUp();
    clock.setWall(createdAtMs - dayMs);
    assert.equal(over(), false);
    await clock.advance(30 * minuteMs);
    assert.equal(over(), true);
  });

  it('is at once for a grant whose deadline passed before it was first seen', () => {
    const { clock, over } = setUp();
    clock.setWall(until + hourMs);
    assert.equal(over(), true);
  });

  it('counts the time that passed when a decision replaces the provisional deadline', async () => {
    const { clock, deadlines, over } = setUp();
    assert.equal(deadlines.hasPassed('r-1', createdAtMs, createdAtMs + hourMs), false);
    await clock.advance(20 * minuteMs);
    assert.equal(over(), false);
    clock.setWall(createdAtMs);
    await clock.advance(10 * minuteMs);
    assert.equal(over(), true);
  });

  it('is looked at next at the deadline, or sooner by what monotonic time leaves', async () => {
    const { clock, deadlines } = setUp();
    const next = (): number => deadlines.nextCheckMs('r-1', createdAtMs, until);
    assert.equal(next(), until);
    await clock.advance(10 * minuteMs);
    clock.setWall(createdAtMs - hourMs);
    assert.equal(next(), createdAtMs - hourMs + 20 * minuteMs);
    clock.setWall(createdAtMs + dayMs);
    assert.equal(next(), until);
  });

  it('is kept for each request by itself, and forgotten on demand', async () => {
    const { clock, deadlines, over } = setUp();
    over();
    await clock.advance(20 * minuteMs);
    clock.setWall(createdAtMs);
    assert.equal(deadlines.nextCheckMs('r-2', createdAtMs, until), until);
    assert.equal(deadlines.nextCheckMs('r-1', createdAtMs, until), createdAtMs + 10 * minuteMs);
    deadlines.forget('r-1');
    assert.equal(deadlines.nextCheckMs('r-1', createdAtMs, until), until);
  });

  it('never comes later than the granted time after first sight, whatever the wall clock does', async () => {
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

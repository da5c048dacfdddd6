import assert from 'node:assert/strict';
import { formatMicroTime, formatTime, parseTime, sleep, systemClock } from '../../../src/kit/clock.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('time formats', () => {
  it('are those of metav1.Time and metav1.MicroTime', () => {
    const instant = Date.UTC(2026, 10, 21, 9, 30, 0, 999);
    assert.equal(formatTime(instant), '2026-11-21T09:30:00Z');
    assert.equal(formatMicroTime(instant), '2026-11-21T09:30:00.999000Z');
  });

  const texts: [string, number | undefined][] = [
    ['2026-11-21T09:30:00Z', Date.UTC(2026, 10, 21, 9, 30)],
    ['2026-11-21T09:30:00.123456Z', Date.UTC(2026, 10, 21, 9, 30, 0, 123)],
    ['2026-11-21T10:30:00+01:00', Date.UTC(2026, 10, 21, 9, 30)],
    ['2026-11-21', undefined],
    ['2026-13-21T09:30:00Z', undefined],
    ['2026-11-21T09:30:00', undefined],
    ['now', undefined],
  ];
  for (const [text, instant] of texts) it(`reads ${text}`, () => assert.equal(parseTime(text), instant));
});

describe('sleep', () => {
  it('ends on time', async () => {
    const clock = new SimulatedClock();
    let awake = false;
    const sleeping = sleep(clock, 100).then(() => {
      awake = true;
    });
    await clock.advance(99);
    assert.equal(awake, false);
    await clock.advance(1);
    await sleeping;
  });

  it('ends early by its signal, even by one that was aborted before', async () => {
    const clock = new SimulatedClock();
    const stop = new AbortController();
    const sleeping = assert.rejects(sleep(clock, 100, stop.signal), /stop/);
    stop.abort(new Error('stop'));
    await sleeping;
    await assert.rejects(sleep(clock, 100, stop.signal), /stop/);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe('systemClock', () => {
  it('runs a callback after the delay, and no cancelled one', async () => {
    const startedAt = systemClock.monotonic();
    systemClock.schedule(1, () => assert.fail('was cancelled'))();
    await new Promise<void>((resolve) => {
      // Keeps the process alive, because the clock's timers do not.
      const alive = setInterval(() => {}, 1000);
      systemClock.schedule(5, () => {
        clearInterval(alive);
        resolve();
      });
    });
    assert.ok(systemClock.monotonic() - startedAt >= 5);
  });

  it('runs no callback early, not even by a fraction of a millisecond', async () => {
    const alive = setInterval(() => {}, 1000);
    const earlyByMs = await Promise.all(
      Array.from({ length: 200 }, (_, index) => {
        const dueAt = systemClock.monotonic() + index / 7;
        const leftMs = (): number => dueAt - systemClock.monotonic();
        return new Promise<number>((resolve) => systemClock.schedule(leftMs(), () => resolve(leftMs())));
      }),
    );
    clearInterval(alive);
    assert.ok(Math.max(...earlyByMs) <= 0);
  });
});

import assert from 'node:assert/strict';
import { watchClockSkew } from '../../../src/observe/clock-skew.ts';
import { createLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('clock skew', () => {
  const setUp = () => {
    const clock = new SimulatedClock(1_000_000);
    const lines: string[] = [];
    const metrics = createMetrics();
    const log = createLog({ clock, write: (line) => lines.push(line) });
    return { clock, lines, metrics, observe: watchClockSkew({ clock, log, metrics }) };
  };

  it('logs nothing while the clocks differ by at most five seconds', () => {
    const { clock, lines, observe } = setUp();
    observe(clock.now() - 5000);
    observe(clock.now() + 5000);
    assert.deepEqual(lines, []);
  });

  it('warns once in five minutes if they differ by more', async () => {
    const { clock, lines, observe } = setUp();
    observe(clock.now() - 8000);
    observe(clock.now() - 8000);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /"skewSeconds":8/);
    await clock.advance(5 * 60_000);
    observe(clock.now() + 8000);
    assert.equal(lines.length, 2);
  });

  it('exports the difference', async () => {
    const { clock, metrics, observe } = setUp();
    observe(clock.now() + 3000);
    assert.match(await metrics.expose(), /drawbridge_clock_skew_seconds -3/);
  });
});

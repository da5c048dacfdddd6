import type { SimulatedClock } from './simulated-clock.ts';

/** Waits until pending loopback traffic is handled, which needs turns of the event loop, not time. */
export async function settleIo(turns = 25): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Advances `clock` by `ms` in small steps and waits for the network after each. */
export async function advanceIo(clock: SimulatedClock, ms: number, stepMs = 250): Promise<void> {
  await settleIo();
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
    await clock.advance(Math.min(stepMs, leftMs));
    await settleIo();
  }
}

/** Waits until `condition` is true, without advancing a simulated clock. Rejects after 5 s of real time. */
export async function until(condition: () => boolean, what = 'the condition'): Promise<void> {
  const endMs = performance.now() + 5_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`${what} was not true within 5 s`);
    await settleIo(5);
  }
}

import type { Clock } from '../../../src/kit/clock.ts';
import { TimerHeap } from '../timer-heap.ts';

/** Simulated time, milliseconds. Whatever promises an event fulfills is done before the next one. */
export class Timeline {
  now = 0;
  /** Called after each event; what it throws ends the run. */
  afterEach: () => void = () => {};
  readonly #timers = new TimerHeap();

  /** Returns what cancels it. */
  after(delayMs: number, act: () => void): () => void {
    return this.#timers.add(this.now + Math.max(0, delayMs), act);
  }

  /** Until that instant, or until nothing is left to happen. Returns the number of events. */
  async runUntil(until: number, limit: number): Promise<number> {
    let events = 0;
    await settled();
    for (let timer = this.#timers.take(until); timer; timer = this.#timers.take(until)) {
      events += 1;
      if (events > limit) throw new Error(`I21: more than ${limit} events: a busy loop`);
      this.now = timer.at;
      timer.callback();
      await settled();
      this.afterEach();
    }
    this.now = until;
    return events;
  }
}

/** Every promise chain that is ready runs to its end. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What the wall clock of everybody whose clock is right shows when a timeline begins. */
export const epochMs = Date.UTC(2026, 10, 21, 9);

/** A process that lives on a timeline, and whose wall clock may be wrong. What it is told while it stands still it does when it goes on. */
export class SimulatedProcess {
  readonly time: Timeline;
  readonly clock: Clock;
  paused = false;
  stopped = false;
  #skewMs: number;
  /** When its wall clock was last set. */
  #setAt = Number.NEGATIVE_INFINITY;
  readonly #frozen: (() => void)[] = [];

  constructor(time: Timeline, skewMs: number) {
    this.time = time;
    this.#skewMs = skewMs;
    this.clock = {
      now: () => epochMs + time.now + this.#skewMs,
      monotonic: () => time.now,
      schedule: (delayMs, callback) => {
        let isCancelled = false;
        const cancel = this.later(delayMs, () => {
          if (!isCancelled) callback();
        });
        return () => {
          isCancelled = true;
          cancel();
        };
      },
    };
  }

  /** Its wall clock jumps: `skewMs` is against the time of the world. */
  setWall(skewMs: number): void {
    this.#skewMs = skewMs;
    this.#setAt = this.time.now;
  }

  /** Milliseconds since its wall clock last jumped. */
  get steadyMs(): number {
    return this.time.now - this.#setAt;
  }

  /** Something that it does or is told then. Returns what cancels it. */
  later(delayMs: number, act: () => void): () => void {
    return this.time.after(delayMs, () => this.#run(act));
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    for (const act of this.#frozen.splice(0)) this.later(0, act);
  }

  /** It is gone; what it has sent is on its way. */
  stop(): void {
    this.stopped = true;
  }

  #run(act: () => void): void {
    if (this.stopped) return;
    if (this.paused) this.#frozen.push(act);
    else act();
  }
}

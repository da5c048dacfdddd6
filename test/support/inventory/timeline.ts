import type { Clock } from '../../../src/kit/clock.ts';
import { TimerHeap } from '../timer-heap.ts';

/** Simulated time in milliseconds. All promises that an event resolves settle before the next event. */
export class Timeline {
  now = 0;
  /** Called after each event; a thrown error ends the run. */
  afterEach: () => void = () => {};
  readonly #timers = new TimerHeap();

  /** Returns what cancels it. */
  after(delayMs: number, act: () => void): () => void {
    return this.#timers.add(this.now + Math.max(0, delayMs), act);
  }

  /** Runs until the instant or until no events are left. Returns the number of events. */
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

/** Lets all ready promise chains settle. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Correct wall clock at the start of a timeline, epoch milliseconds. */
export const epochMs = Date.UTC(2026, 10, 21, 9);

/** A simulated process with a possibly wrong wall clock. Events during a pause are handled when it resumes. */
export class SimulatedProcess {
  readonly time: Timeline;
  readonly clock: Clock;
  paused = false;
  stopped = false;
  #skewMs: number;
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

  /** Sets the wall clock to a skew against the simulated time. */
  setWall(skewMs: number): void {
    this.#skewMs = skewMs;
  }

  /** Schedules a task of the process; returns a cancel function. */
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

  /** Stops the process; sent requests continue. */
  stop(): void {
    this.stopped = true;
  }

  #run(act: () => void): void {
    if (this.stopped) return;
    if (this.paused) this.#frozen.push(act);
    else act();
  }
}

import type { Clock } from '../../../src/kit/clock.ts';
import type { Timeline } from './timeline.ts';

/** What the wall clock of everybody whose clock is right shows when a timeline begins. */
export const epochMs = Date.UTC(2026, 10, 21, 9);

/** A process that lives on a timeline, and whose wall clock may be wrong. What it is told while it stands still it does when it goes on. */
export class SimulatedProcess {
  readonly time: Timeline;
  /** Its wall clock against the time of the world. */
  skewMs: number;
  paused = false;
  stopped = false;
  readonly clock: Clock;
  readonly #frozen: (() => void)[] = [];

  constructor(time: Timeline, skewMs: number) {
    this.time = time;
    this.skewMs = skewMs;
    this.clock = {
      now: () => epochMs + time.now + this.skewMs,
      monotonic: () => time.now,
      schedule: (delayMs, callback) => {
        let isCancelled = false;
        this.later(delayMs, () => {
          if (!isCancelled) callback();
        });
        return () => {
          isCancelled = true;
        };
      },
    };
  }

  /** Something that it does or is told then. */
  later(delayMs: number, act: () => void): void {
    this.time.after(delayMs, () => this.#run(act));
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    for (const act of this.#frozen.splice(0)) this.#run(act);
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

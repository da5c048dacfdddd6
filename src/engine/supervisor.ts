import { backoffMs } from '../kit/backoff.ts';
import { type Clock, sleep } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import type { Log } from '../observe/log.ts';

/** Such as a Controller. */
export interface Runnable {
  readonly name: string;
  /** Runs until `signal` aborts and nothing is in flight; rejects if it cannot continue. */
  run(signal: AbortSignal, onSynced: () => void): Promise<void>;
}

export type ControllerState =
  /** Waits for leadership, or for a controller that starts before it. */
  | 'waiting'
  /** Its sources sync. */
  | 'syncing'
  | 'running'
  /** Waits for its restart after a failure. */
  | 'restarting'
  /** Never starts again: it was removed, or the manager stops. */
  | 'stopped';

export interface Supervision {
  readonly clock: Clock;
  readonly log: Log;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Exponential, with full jitter. */
const RESTART_BACKOFF = { baseMs: 1000, capMs: 30_000 };

/**
 * Repeats `attempt` with backoff until `signal` aborts. Each end before that counts as a failure.
 * `healthy` resets the backoff; `onFailure` comes before the wait. Never rejects.
 */
export async function supervise(
  { clock, random }: Supervision,
  signal: AbortSignal,
  attempt: (healthy: () => void) => Promise<void>,
  onFailure: (error: unknown, delayMs: number) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let error: unknown;
    try {
      await attempt(() => {
        failures = 0;
      });
      error = new Error('the run ended although nothing stopped it');
    } catch (thrown) {
      error = thrown;
    }
    if (signal.aborted) return;
    const delayMs = backoffMs({ ...RESTART_BACKOFF, attempt: failures, random });
    failures += 1;
    onFailure(error, delayMs);
    await sleep(clock, delayMs, signal).catch(() => {});
  }
}

/** Restarts its controller after failures, and records its state. */
export class SupervisedController {
  state: ControllerState = 'waiting';
  readonly #runnable: Runnable;
  readonly #supervision: Supervision;
  #stop: AbortController | undefined;
  #run: Promise<void> = Promise.resolve();
  #settleStart: () => void = () => {};

  constructor(runnable: Runnable, supervision: Supervision) {
    this.#runnable = runnable;
    this.#supervision = supervision;
  }

  get name(): string {
    return this.#runnable.name;
  }

  /** May follow `stop('waiting')`. Resolves at the first sync or at `stop`. Never rejects. */
  start(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    return new Promise((resolve) => {
      this.#settleStart = resolve;
      this.#run = this.#supervise(stop.signal);
    });
  }

  /** Resolves once nothing is in flight. `stopped`: it never starts again. */
  async stop(finalState: 'waiting' | 'stopped'): Promise<void> {
    this.#stop?.abort();
    this.#settleStart();
    await this.#run;
    this.state = finalState;
  }

  #supervise(signal: AbortSignal): Promise<void> {
    return supervise(
      this.#supervision,
      signal,
      (healthy) => {
        this.state = 'syncing';
        return this.#runnable.run(signal, () => {
          if (signal.aborted) return;
          this.state = 'running';
          healthy();
          this.#settleStart();
        });
      },
      (error, delayMs) => {
        this.state = 'restarting';
        this.#supervision.log.error('controller failed; the server restarts it', {
          controller: this.name,
          error: describe(error),
          restartInMs: Math.round(delayMs),
        });
      },
    );
  }
}

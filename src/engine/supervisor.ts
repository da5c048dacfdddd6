import { backoffMs } from '../kit/backoff.ts';
import { type Clock, sleep } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import type { Log } from '../observe/log.ts';

/** A task that a manager runs, such as a Controller. */
export interface Runnable {
  readonly name: string;
  /**
   * Runs until `signal` aborts, then resolves once nothing is in flight; rejects if it cannot continue. Calls `onSynced` once its
   * sources have synced.
   */
  run(signal: AbortSignal, onSynced: () => void): Promise<void>;
}

/** What a controller does now. */
export type ControllerState =
  /** Waits for leadership, or for a controller that starts before it. */
  | 'waiting'
  /** Waits for its sources to sync. */
  | 'syncing'
  /** Its sources have synced, and it reconciles. */
  | 'running'
  /** Waits for its restart after a failure; `error` describes the failure. */
  | 'restarting'
  /** Never starts again: the controller was removed, or the manager stops. */
  | 'stopped';

/** Dependencies of `supervise`. */
export interface Supervision {
  readonly clock: Clock;
  readonly log: Log;
  /** Uniform in [0, 1), for the delay before a restart. */
  readonly random: () => number;
}

/** Bounds of the delay before a restart, milliseconds. The delay grows exponentially, with full jitter. */
export const RESTART_BACKOFF = { baseMs: 1000, capMs: 30_000 };

/**
 * Repeats `attempt` with backoff until `signal` aborts. An attempt that ends before `signal` aborts counts as failed, even if it has no
 * error. An attempt calls `healthy` once it works, which resets the backoff. Calls `onFailure` after each failed attempt, before the wait
 * of `delayMs` milliseconds. Never rejects.
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

/** Runs one controller of a manager, restarts it after failures, and records its state. */
export class SupervisedController {
  state: ControllerState = 'waiting';
  /** The last failure; undefined once the controller has synced again. */
  error: string | undefined;
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

  /**
   * Starts the controller; call it again after `stop('waiting')`. Resolves when the controller has synced once since this call, or is
   * stopped before that. Never rejects.
   */
  start(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    return new Promise((resolve) => {
      this.#settleStart = resolve;
      this.#run = this.#supervise(stop.signal);
    });
  }

  /**
   * Stops the controller. Resolves once nothing is in flight, after it has set `state` to `finalState`. Pass `stopped` if the controller
   * never starts again, otherwise `waiting`.
   */
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
          this.error = undefined;
          healthy();
          this.#settleStart();
        });
      },
      (error, delayMs) => {
        this.state = 'restarting';
        this.error = describe(error);
        this.#supervision.log.error('controller failed; the server restarts it', {
          controller: this.name,
          error: this.error,
          restartInMs: Math.round(delayMs),
        });
      },
    );
  }
}

import { describe } from '../kit/errors.ts';
import type { LeaderGate } from './leader-gate.ts';
import { type SupervisedController, type Supervision, supervise } from './supervisor.ts';

/** The controllers behind one leader gate, which run while this process leads. */
export class Group {
  readonly #gate: LeaderGate;
  readonly #supervision: Supervision;
  /** In the order in which they were added. */
  readonly #controllers = new Map<SupervisedController, { readonly ordered: boolean }>();
  /** Set while this process leads; aborts when it no longer does. */
  #leadership: AbortSignal | undefined;
  #closed = false;

  constructor(gate: LeaderGate, supervision: Supervision) {
    this.#gate = gate;
    this.#supervision = supervision;
  }

  get name(): string {
    return this.#gate.name;
  }

  /**
   * `independent`: starts as soon as this process leads. The others start in the order of their
   * addition, each once the one before it has synced.
   */
  add(controller: SupervisedController, independent: boolean): void {
    this.#controllers.set(controller, { ordered: !independent });
    if (this.#leadership && independent && !this.#closed) void controller.start();
  }

  /** Waits for its reconciles. */
  async remove(controller: SupervisedController): Promise<void> {
    this.#controllers.delete(controller);
    await controller.stop('stopped');
  }

  /** Starts no controller from now on. */
  close(): void {
    this.#closed = true;
  }

  /** Campaigns and runs the controllers while this process leads. Never rejects. */
  run(signal: AbortSignal): Promise<void> {
    return supervise(
      this.#supervision,
      signal,
      (healthy) =>
        this.#gate.run((leading) => {
          healthy();
          return this.#lead(leading);
        }, signal),
      (error, delayMs) =>
        this.#supervision.log.error('leader election failed', {
          gate: this.name,
          error: describe(error),
          retryInMs: Math.round(delayMs),
        }),
    );
  }

  async #lead(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#leadership = signal;
    const stopped = this.#stopControllersOnAbort(signal);
    for (const [controller, { ordered }] of this.#controllers) if (!ordered) void controller.start();
    for (const [controller, { ordered }] of this.#controllers) {
      if (!ordered) continue;
      if (signal.aborted || this.#closed) break;
      await controller.start();
    }
    await stopped;
  }

  /** Synchronously: no write may start after `signal` has aborted. */
  #stopControllersOnAbort(signal: AbortSignal): Promise<unknown> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#leadership = undefined;
        const state = this.#closed ? 'stopped' : 'waiting';
        resolve(Promise.all([...this.#controllers.keys()].map((controller) => controller.stop(state))));
      };
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}

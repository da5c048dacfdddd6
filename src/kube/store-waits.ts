import type { Clock } from '../kit/clock.ts';
import { deferred, unlessAborted } from '../kit/promises.ts';
import type { Projected, Store } from './store.ts';

interface StoreWaitsDeps {
  readonly stores: readonly Pick<Store<Projected>, 'subscribe'>[];
  readonly clock: Clock;
  /** How long one wait lasts at most, milliseconds. */
  readonly limitMs: number;
  /** Maximum number of waits at once. Each may hold a connection, and a client can cause any number of waits. */
  readonly maxWaiting: number;
}

interface Wait {
  readonly isShown: () => boolean;
  readonly resolve: () => void;
}

/** Waits for a limited time until stores show what the caller looks for. A watch may lag behind, or there may be no such object. */
export class StoreWaits {
  readonly #deps: StoreWaitsDeps;
  readonly #waits = new Set<Wait>();

  constructor(deps: StoreWaitsDeps) {
    this.#deps = deps;
    // Once, not in each wait: a store begins each subscription with all of its objects.
    for (const store of deps.stores) store.subscribe(() => this.#check());
  }

  /**
   * Resolves once `isShown` returns true after a change of a store, or after the time limit. Resolves at once if it returns true already, or
   * if too many calls wait. Rejects with the reason of `signal` if that aborts first.
   */
  async until(isShown: () => boolean, signal: AbortSignal): Promise<void> {
    const { clock, limitMs, maxWaiting } = this.#deps;
    if (isShown() || this.#waits.size >= maxWaiting) return;
    const { promise, resolve } = deferred();
    const wait = { isShown, resolve };
    const cancel = clock.schedule(limitMs, resolve);
    this.#waits.add(wait);
    try {
      await unlessAborted(promise, signal);
    } finally {
      this.#waits.delete(wait);
      cancel();
    }
  }

  #check(): void {
    for (const { isShown, resolve } of this.#waits) if (isShown()) resolve();
  }
}

import type { Clock } from '../kit/clock.ts';
import { unlessAborted } from '../kit/promises.ts';
import type { Projected, Store } from './store.ts';

interface StoreWaitsDeps {
  readonly stores: readonly Pick<Store<Projected>, 'subscribe'>[];
  readonly clock: Clock;
  readonly limitMs: number;
  /** Each may hold a connection, and a client can cause any number of waits. */
  readonly maxWaiting: number;
}

interface Wait {
  readonly isShown: () => boolean;
  readonly resolve: () => void;
}

/** Waits for what stores may show soon: a watch may lag, or there is no such object. */
export class StoreWaits {
  readonly #deps: StoreWaitsDeps;
  readonly #waits = new Set<Wait>();

  constructor(deps: StoreWaitsDeps) {
    this.#deps = deps;
    // Once, not in each wait: a store begins each subscription with all of its objects.
    for (const store of deps.stores) store.subscribe(() => this.#check());
  }

  /** Resolves at the time limit, too, and at once if too many wait. Rejects if `signal` aborts. */
  async until(isShown: () => boolean, signal: AbortSignal): Promise<void> {
    const { clock, limitMs, maxWaiting } = this.#deps;
    if (isShown() || this.#waits.size >= maxWaiting) return;
    const { promise, resolve } = Promise.withResolvers<void>();
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

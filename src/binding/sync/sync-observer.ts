import type { Clock } from '../../kit/clock.ts';

/** Told of what a syncer does, for metrics. Must not throw. */
export interface SyncObserver {
  /** A change of a consumer object is in the provider, so many seconds after the watch has shown it. */
  up(seconds: number): void;
  /** A change of a copy's status is in the consumer, so many seconds after the watch has shown it. */
  down(seconds: number): void;
  /** A write met a newer version of its object and is made again. */
  conflict(side: 'consumer' | 'provider'): void;
  /** Somebody had changed or deleted a copy that was in step, and it is mended. */
  repaired(): void;
}

export const noSyncObserver: SyncObserver = { up() {}, down() {}, conflict() {}, repaired() {} };

/** How long changes take from when they are seen until they are written. */
export class Latency {
  readonly #clock: Clock;
  readonly #seenAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The first change since the last write counts. */
  seen(key: string): void {
    if (!this.#seenAt.has(key)) this.#seenAt.set(key, this.#clock.monotonic());
  }

  /** Seconds since then; undefined when nothing was seen. */
  take(key: string): number | undefined {
    const seenAt = this.#seenAt.get(key);
    this.#seenAt.delete(key);
    return seenAt === undefined ? undefined : (this.#clock.monotonic() - seenAt) / 1000;
  }

  clear(): void {
    this.#seenAt.clear();
  }
}

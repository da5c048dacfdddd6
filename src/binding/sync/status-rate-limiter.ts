const STATUS_INTERVAL_MS = 300;

/** The first status change of a key is written at once; the last one is never dropped. */
export class StatusRateLimiter {
  readonly #writtenAt = new Map<string, number>();

  waitMs(key: string, nowMs: number): number {
    const writtenAt = this.#writtenAt.get(key);
    return writtenAt === undefined ? 0 : Math.max(0, writtenAt + STATUS_INTERVAL_MS - nowMs);
  }

  recordWrite(key: string, nowMs: number): void {
    this.#writtenAt.set(key, nowMs);
  }

  forget(key: string): void {
    this.#writtenAt.delete(key);
  }

  clear(): void {
    this.#writtenAt.clear();
  }
}

/** Minimum interval between status writes of a key, milliseconds. */
const STATUS_INTERVAL_MS = 300;

/** Limits the rate of status writes for each key. The first change is written at once, and the last one is never dropped. */
export class StatusRateLimiter {
  readonly #writtenAt = new Map<string, number>();

  /** Milliseconds until the key's status may be written; 0 if it may be written now. */
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

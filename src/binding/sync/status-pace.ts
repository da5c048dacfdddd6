/** The first change of a status is written at once, then one in this time a key; the last one is never dropped. */
const STATUS_INTERVAL_MS = 300;

export class StatusPace {
  readonly #writtenAt = new Map<string, number>();

  /** Milliseconds until the key's status may be written; 0 when it may be now. */
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

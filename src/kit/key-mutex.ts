/** Work on one key runs in the order of the calls, work on different keys concurrently. */
export class KeyMutex {
  /** When the work of the last call has settled. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** After all earlier work on the key, failed or not. Settles as `work` does. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const result = before.then(work);
    const settled = result
      .catch(() => undefined)
      .then(() => {
        if (this.#last.get(key) === settled) this.#last.delete(key);
      });
    this.#last.set(key, settled);
    return result;
  }

  /** Keys with unfinished work. */
  get size(): number {
    return this.#last.size;
  }
}

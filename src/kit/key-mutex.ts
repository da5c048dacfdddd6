/** Runs work on the same key sequentially, in the order of the calls; work on different keys runs concurrently. */
export class KeyMutex {
  /** By key: resolves when the work of the last call has settled. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Starts `work` once all earlier work on the key has settled, by success or failure. Settles as `work` does. */
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

  /** The number of keys with unfinished work. */
  get size(): number {
    return this.#last.size;
  }
}

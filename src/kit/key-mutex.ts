/** Work on one key runs one at a time, in the order in which it was asked for; work on different keys runs side by side. */
export class KeyMutex {
  /** By key: settles with the last work that was asked for. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Settles as `work` does, which begins once everything asked for this key before has settled, by success or failure. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const own = before.then(work);
    const settled = own
      .catch(() => undefined)
      .then(() => {
        if (this.#last.get(key) === settled) this.#last.delete(key);
      });
    this.#last.set(key, settled);
    return own;
  }

  /** Keys that are worked on. */
  get size(): number {
    return this.#last.size;
  }
}

/** Whom to call on an event. */
export class Listeners<Event> {
  readonly #listeners = new Set<(event: Event) => void>();

  /** The same function may be added twice. The result removes it. */
  add(listener: (event: Event) => void): () => void {
    const added = (event: Event): void => listener(event);
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  notify(event: Event): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  clear(): void {
    this.#listeners.clear();
  }
}

/** What is wrong with single objects, for the condition of a binding. */
export class ProblemList {
  readonly #messages = new Map<string, string>();
  readonly #onChange: () => void;

  /** `onChange` is called when the list reads differently than before. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** `message` undefined: all is well with `key`. True when that is news. */
  set(key: string, message: string | undefined): boolean {
    if (this.#messages.get(key) === message) return false;
    if (message === undefined) this.#messages.delete(key);
    else this.#messages.set(key, message);
    this.#onChange();
    return true;
  }

  /** At most `limit` sentences, oldest first, and one that says how many more there are. */
  list(limit: number): readonly string[] {
    const messages = [...this.#messages.values()];
    const more = messages.length - limit;
    return more > 0 ? [...messages.slice(0, limit), `${more} more objects cannot be synced.`] : messages;
  }
}

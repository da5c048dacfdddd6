/**
 * The watch of an in-memory store. Events arrive immediately, through the link, or after a pause ends. If events were dropped during a
 * pause, a relist reports the differences.
 */
export class MemoryWatch<Item extends { readonly resourceVersion: string }, Event> {
  readonly #listeners = new Set<(event: Event) => void>();
  readonly #seen = new Map<string, Item>();
  readonly #waiting: (() => void)[] = [];
  readonly #eventOf: (now: Item | undefined, before: Item | undefined) => Event;
  readonly #deliverLater: (event: () => void) => void;
  #paused = false;
  #unheard = false;
  /** Events from before a relist are dropped. */
  #lists = 0;

  /** `now` is undefined for a deleted item. */
  constructor(
    eventOf: (now: Item | undefined, before: Item | undefined) => Event,
    deliver: (event: () => void) => void = (event) => event(),
  ) {
    this.#eventOf = eventOf;
    this.#deliverLater = deliver;
  }

  find(key: string): Item | undefined {
    return this.#seen.get(key);
  }

  list(): Iterable<Item> {
    return [...this.#seen.values()];
  }

  subscribe(listener: (event: Event) => void): () => void {
    this.#listeners.add(listener);
    for (const item of this.#seen.values()) listener(this.#eventOf(item, undefined));
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Publishes that `key` now holds `item`; undefined if it was deleted at `resourceVersion`. */
  push(key: string, item: Item | undefined, resourceVersion: string): void {
    const lists = this.#lists;
    this.#deliverLater(() => {
      if (lists !== this.#lists) return;
      if (this.#paused) this.#waiting.push(() => this.#deliver(key, item, resourceVersion));
      else this.#deliver(key, item, resourceVersion);
    });
  }

  /** Records the answer to a write of this reader. */
  recordWrite(key: string, item: Item): void {
    const seen = this.#seen.get(key);
    if (!seen || Number(seen.resourceVersion) <= Number(item.resourceVersion)) this.setSeen(key, item);
  }

  /** Records the answer to a deletion by this reader. */
  removed(key: string, resourceVersion: string): void {
    this.#deliver(key, undefined, resourceVersion);
  }

  pause(): void {
    this.#paused = true;
  }

  /** Delivers the missed events in order. */
  resume(): void {
    this.#paused = false;
    for (const deliver of this.#waiting.splice(0)) deliver();
  }

  /** Applies `change` without events; reads see it. */
  withoutEvents(change: () => void): void {
    this.#unheard = true;
    change();
    this.#unheard = false;
  }

  /** Drops missed events and relists with the present items in `truth`. */
  relist(truth: ReadonlyMap<string, Item>): void {
    this.#paused = false;
    this.#waiting.length = 0;
    this.#lists += 1;
    for (const [key, { resourceVersion }] of [...this.#seen]) {
      if (!truth.has(key)) this.#deliver(key, undefined, resourceVersion);
    }
    for (const [key, item] of truth) if (this.#seen.get(key) !== item) this.#deliver(key, item, item.resourceVersion);
  }

  /** Makes an own write visible before the watch reports it. */
  setSeen(key: string, item: Item | undefined): void {
    if (item === undefined) this.#seen.delete(key);
    else this.#seen.set(key, item);
  }

  #deliver(key: string, item: Item | undefined, resourceVersion: string): void {
    const before = this.#seen.get(key);
    if (item === undefined && before === undefined) return;
    if (before && Number(resourceVersion) < Number(before.resourceVersion)) return;
    this.setSeen(key, item);
    if (this.#unheard) return;
    for (const listener of [...this.#listeners]) listener(this.#eventOf(item, before));
  }
}

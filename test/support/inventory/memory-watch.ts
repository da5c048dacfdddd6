/**
 * The watch of a memory store: what its readers have seen of what is there. Events arrive at once, or as its link delivers them, or,
 * while it is paused, when it resumes; a pause whose events were dropped ends with a relist, which tells only of what differs.
 */
export class MemoryWatch<Item extends { readonly resourceVersion: string }, Event> {
  readonly #listeners = new Set<(event: Event) => void>();
  readonly #seen = new Map<string, Item>();
  readonly #waiting: (() => void)[] = [];
  readonly #tell: (now: Item | undefined, before: Item | undefined) => Event;
  readonly #deliverLater: (event: () => void) => void;
  #paused = false;
  #unheard = false;
  /** What was on its way before a list is not told any more. */
  #lists = 0;

  /** `now` is undefined for what is gone. */
  constructor(
    tell: (now: Item | undefined, before: Item | undefined) => Event,
    deliver: (event: () => void) => void = (event) => event(),
  ) {
    this.#tell = tell;
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
    for (const item of this.#seen.values()) listener(this.#tell(item, undefined));
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** The writer's side: `key` now holds `item`, which is undefined for what is gone since `resourceVersion`. */
  push(key: string, item: Item | undefined, resourceVersion: string): void {
    const lists = this.#lists;
    this.#deliverLater(() => {
      if (lists !== this.#lists) return;
      if (this.#paused) this.#waiting.push(() => this.#deliver(key, item, resourceVersion));
      else this.#deliver(key, item, resourceVersion);
    });
  }

  /** The answer to a write of its reader. */
  wrote(key: string, item: Item): void {
    const seen = this.#seen.get(key);
    if (!seen || Number(seen.resourceVersion) <= Number(item.resourceVersion)) this.note(key, item);
  }

  /** The answer to a deletion by its reader, of that version. */
  removed(key: string, resourceVersion: string): void {
    this.#deliver(key, undefined, resourceVersion);
  }

  pause(): void {
    this.#paused = true;
  }

  /** What happened meanwhile arrives, in order. */
  resume(): void {
    this.#paused = false;
    for (const deliver of this.#waiting.splice(0)) deliver();
  }

  /** What `change` does is there for whoever looks, and nobody is told. */
  unheard(change: () => void): void {
    this.#unheard = true;
    change();
    this.#unheard = false;
  }

  /** The events meanwhile are lost; `truth` is what a list holds now. */
  relist(truth: ReadonlyMap<string, Item>): void {
    this.#paused = false;
    this.#waiting.length = 0;
    this.#lists += 1;
    for (const [key, { resourceVersion }] of [...this.#seen]) {
      if (!truth.has(key)) this.#deliver(key, undefined, resourceVersion);
    }
    for (const [key, item] of truth) if (this.#seen.get(key) !== item) this.#deliver(key, item, item.resourceVersion);
  }

  /** For a reader that has written it itself: seen at once, told by the watch later. */
  note(key: string, item: Item | undefined): void {
    if (item === undefined) this.#seen.delete(key);
    else this.#seen.set(key, item);
  }

  #deliver(key: string, item: Item | undefined, resourceVersion: string): void {
    const before = this.#seen.get(key);
    if (item === undefined && before === undefined) return;
    if (before && Number(resourceVersion) < Number(before.resourceVersion)) return;
    this.note(key, item);
    if (this.#unheard) return;
    for (const listener of [...this.#listeners]) listener(this.#tell(item, before));
  }
}

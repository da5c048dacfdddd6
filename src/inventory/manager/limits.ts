import { lanes } from '../core/triggers.ts';
import { type ComponentKey, keyText, readKey } from '../key.ts';
import type { Registry } from './registrations.ts';

const laneCount = Object.keys(lanes).length;
/** Runs of one entry at a time. */
const maxRunsPerEntry = 6;

interface LimitsDeps {
  readonly registry: Registry;
  /** Whether anything may be dispatched at all. */
  readonly authorizationProved: () => boolean;
  /** Whether what an entry needs before its first run is there. */
  readonly prepared: (entryUid: string) => boolean;
  /** Whether the endpoint of a component may be called; a call that it lets through counts as its probe. */
  readonly breakerAdmits: (component: string) => boolean;
  /** The lane that a key waits in; undefined when nobody looks after it any more. */
  readonly laneOf: (key: string) => number | undefined;
  /** Tells the queue that these may have their turn now; all, when none are named. */
  readonly wake: (keys?: Iterable<string>) => void;
}

/**
 * How many runs there may be at a time: of a component, over all entries, and of an entry. Runs that go on after their call count,
 * until their entry is gone. A slot that gets free goes to whoever waits for it in the most urgent lane.
 */
export class Limits {
  readonly #deps: LimitsDeps;
  readonly #held = new Map<string, ComponentKey>();
  readonly #ofComponent = new Map<string, number>();
  readonly #ofEntry = new Map<string, number>();
  /** Refused keys, by the component or the entry whose limit it was, and by lane. */
  readonly #waiting = new Map<string, Set<string>[]>();

  constructor(deps: LimitsDeps) {
    this.#deps = deps;
  }

  /** Takes a slot for `text` if it may run now; it has to be released. What is gone gets its turn without one, to end there. */
  admit(text: string): boolean {
    if (this.#held.has(text)) return true;
    const key = readKey(text);
    const lane = this.#deps.laneOf(text);
    if (!key || lane === undefined) return true;
    if (!this.#deps.authorizationProved()) return false;
    const { entryUid, component } = key;
    if ((this.#ofComponent.get(component) ?? 0) >= this.#maxConcurrent(component))
      return this.#addWaiting(component, text, lane);
    if (!this.#deps.prepared(entryUid) || (this.#ofEntry.get(entryUid) ?? 0) >= maxRunsPerEntry) {
      this.#addWaiting(entryUid, text, lane);
      // The slot of the component is somebody else's then.
      this.#wakeNext(component);
      return false;
    }
    if (!this.#deps.breakerAdmits(component)) return this.#addWaiting(component, text, lane);
    this.#acquire(text, key);
    return true;
  }

  /** For a run that was found at work. */
  acquire(key: ComponentKey): void {
    if (!this.#held.has(keyText(key))) this.#acquire(keyText(key), key);
  }

  release(text: string): void {
    const key = this.#held.get(text);
    if (!key) return;
    this.#held.delete(text);
    add(this.#ofComponent, key.component, -1);
    add(this.#ofEntry, key.entryUid, -1);
    this.#wakeNext(key.component);
    this.entryChanged(key.entryUid);
  }

  /** Nobody looks after it any more: what is in the queue of it may end there. A slot that it has is still to be released. */
  drop(key: ComponentKey): void {
    const text = keyText(key);
    this.#removeWaiting(text, key);
    for (const by of [key.component, key.entryUid]) {
      if (this.#waiting.get(by)?.every(({ size }) => size === 0)) this.#waiting.delete(by);
    }
    this.#deps.wake([text]);
  }

  /** What keeps the keys of an entry may be over. */
  entryChanged(entryUid: string): void {
    this.#wakeAll(entryUid);
  }

  /** The breaker of its endpoint lets calls through again: one, or all. */
  componentChanged(component: string, how: 'probe' | 'closed'): void {
    if (how === 'probe') this.#wakeNext(component);
    else this.#wakeAll(component);
  }

  /** Runs that are on, of a component. */
  running(component: string): number {
    return this.#ofComponent.get(component) ?? 0;
  }

  clear(): void {
    for (const map of [this.#held, this.#ofComponent, this.#ofEntry, this.#waiting]) map.clear();
  }

  #maxConcurrent(component: string): number {
    return this.#deps.registry.get(component)?.maxConcurrent ?? 0;
  }

  #acquire(text: string, key: ComponentKey): void {
    // It waits no more: the next slot is for somebody who does.
    this.#removeWaiting(text, key);
    this.#held.set(text, key);
    add(this.#ofComponent, key.component, 1);
    add(this.#ofEntry, key.entryUid, 1);
  }

  #addWaiting(by: string, text: string, lane: number): false {
    const waiting = this.#waiting.get(by) ?? Array.from({ length: laneCount }, () => new Set<string>());
    this.#waiting.set(by, waiting);
    for (const other of waiting) other.delete(text);
    waiting[Math.min(lane, laneCount - 1)]?.add(text);
    return false;
  }

  #removeWaiting(text: string, { component, entryUid }: ComponentKey): void {
    for (const by of [component, entryUid]) for (const lane of this.#waiting.get(by) ?? []) lane.delete(text);
  }

  /** Of those that wait for a component, the first in the most urgent lane. */
  #wakeNext(component: string): void {
    for (const lane of this.#waiting.get(component) ?? []) {
      for (const text of lane) {
        lane.delete(text);
        this.#deps.wake([text]);
        return;
      }
    }
  }

  #wakeAll(by: string): void {
    const waiting = this.#waiting.get(by);
    this.#waiting.delete(by);
    for (const lane of waiting ?? []) if (lane.size > 0) this.#deps.wake(lane);
  }
}

/** Keeps no entry for what there is none of: entries come and go for as long as the process lives. @testing */
export function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

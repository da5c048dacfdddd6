import { lanes } from '../core/triggers.ts';
import { type ComponentKey, keyText, readKey } from '../key.ts';
import type { RegistrationLister } from './registrations.ts';

const laneCount = Object.keys(lanes).length;
/** Maximum number of concurrent runs of one entry. */
const maxRunsPerEntry = 6;

interface LimitsDeps {
  readonly registrations: RegistrationLister;
  /** Whether write authorization is proved; nothing is dispatched before. */
  readonly authorizationProved: () => boolean;
  /** Whether the entry is prepared for its first run. */
  readonly prepared: (entryUid: string) => boolean;
  /** Whether the circuit breaker admits a call to the component. An admitted call may be the probe. */
  readonly breakerAdmits: (component: string) => boolean;
  /** The lane that a key waits in; undefined if its loop was dropped. */
  readonly laneOf: (key: string) => number | undefined;
  /** Wakes waiting keys in the queue; all if none are given. */
  readonly wake: (keys?: Iterable<string>) => void;
}

/**
 * Limits concurrent runs per component over all entries, and per entry. Asynchronous runs count until they end. A free slot goes to the
 * waiting key in the most urgent lane.
 */
export class Limits {
  readonly #deps: LimitsDeps;
  readonly #held = new Map<string, ComponentKey>();
  readonly #ofComponent = new Map<string, number>();
  readonly #ofEntry = new Map<string, number>();
  /** Waiting keys, by the component or entry whose limit applies, then by lane. */
  readonly #waiting = new Map<string, Set<string>[]>();

  constructor(deps: LimitsDeps) {
    this.#deps = deps;
  }

  /**
   * Takes a slot for the key if it may run now. The caller must release it. A dropped key is admitted without a slot, so that the queue can
   * finish it.
   */
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
      // Another key may use the slot of the component.
      this.#wakeNext(component);
      return false;
    }
    if (!this.#deps.breakerAdmits(component)) return this.#addWaiting(component, text, lane);
    this.#acquire(text, key);
    return true;
  }

  /** Takes a slot for a run that is already active. */
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

  /**
   * Removes a dropped key from the waiting lists and wakes it, so that the queue can finish it. The caller must still release its slot.
   */
  drop(key: ComponentKey): void {
    const text = keyText(key);
    this.#removeWaiting(text, key);
    for (const by of [key.component, key.entryUid]) {
      if (this.#waiting.get(by)?.every(({ size }) => size === 0)) this.#waiting.delete(by);
    }
    this.#deps.wake([text]);
  }

  /** Re-admits the waiting keys of an entry: its limit may have been lifted. */
  entryChanged(entryUid: string): void {
    this.#wakeAll(entryUid);
  }

  /** Re-admits the waiting keys of a component after its breaker admits one probe or all calls. */
  componentChanged(component: string, how: 'probe' | 'closed'): void {
    if (how === 'probe') this.#wakeNext(component);
    else this.#wakeAll(component);
  }

  /** Number of active runs of a component. */
  running(component: string): number {
    return this.#ofComponent.get(component) ?? 0;
  }

  clear(): void {
    for (const map of [this.#held, this.#ofComponent, this.#ofEntry, this.#waiting]) map.clear();
  }

  #maxConcurrent(component: string): number {
    return this.#deps.registrations.get(component)?.maxConcurrent ?? 0;
  }

  #acquire(text: string, key: ComponentKey): void {
    // The key no longer waits, so the next slot goes to another one.
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

  /** Wakes the first waiting key of a component in the most urgent lane. */
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

/** Adds to a count and removes it at zero, so that the map does not grow forever. @testing */
export function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

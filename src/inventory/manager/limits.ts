import { lanes } from '../core/triggers.ts';
import { type ComponentKey, keyText, parseKey } from '../key.ts';
import type { RegistrationLister } from './registrations.ts';

const laneCount = Object.keys(lanes).length;
/** Maximum number of concurrent runs of one entry. Runs that were active when this replica became the leader may exceed it. */
const maxRunsPerEntry = 6;

interface LimitsDeps {
  readonly registrations: RegistrationLister;
  /** Whether write authorization is proved. Until then, no waiting key gets a slot. */
  readonly authorizationProved: () => boolean;
  /** `EntryReconciler.isPrepared`: whether runs of the entry may start. */
  readonly isPrepared: (entryUid: string) => boolean;
  /** Whether the circuit breaker admits a call to the component now. If the breaker is open, it counts an admitted call as its probe. */
  readonly breakerAdmits: (component: string) => boolean;
  /** The lane that a key waits in; undefined if its loop was dropped. */
  readonly laneOf: (key: string) => number | undefined;
  /** Called when a key must wait because the circuit breaker of its component admits no call. */
  readonly onUnreachable: (key: string) => void;
  /** Re-admits waiting keys of the queue; all of them if `keys` is undefined. */
  readonly wake: (keys?: Iterable<string>) => void;
}

/**
 * Limits concurrent runs of each component and of each entry. A key needs a slot to run. An asynchronous run keeps its slot until it ends.
 * The waiting key in the most urgent lane gets a free slot.
 */
export class Limits {
  readonly #deps: LimitsDeps;
  /** Keys with a slot. */
  readonly #slots = new Map<string, ComponentKey>();
  /** Number of slots by component; `#ofEntry`: by entry UID. */
  readonly #ofComponent = new Map<string, number>();
  readonly #ofEntry = new Map<string, number>();
  /** Waiting keys, by the component or the entry for which they wait, then by lane. */
  readonly #waiting = new Map<string, Set<string>[]>();

  constructor(deps: LimitsDeps) {
    this.#deps = deps;
  }

  /**
   * Takes a slot for the key if it may run now, and returns whether it may. The caller must release the slot. A dropped key is admitted
   * without a slot, so that the queue can finish it.
   */
  admit(text: string): boolean {
    if (this.#slots.has(text)) return true;
    const key = parseKey(text);
    const lane = this.#deps.laneOf(text);
    if (!key || lane === undefined) return true;
    if (!this.#deps.authorizationProved()) return false;
    const { entryUid, component } = key;
    if ((this.#ofComponent.get(component) ?? 0) >= this.#maxConcurrent(component)) {
      this.#addWaiting(component, text, lane);
      return false;
    }
    if (!this.#deps.isPrepared(entryUid) || (this.#ofEntry.get(entryUid) ?? 0) >= maxRunsPerEntry) {
      this.#addWaiting(entryUid, text, lane);
      // Another key may use the slot of the component.
      this.#wakeNext(component);
      return false;
    }
    if (!this.#deps.breakerAdmits(component)) {
      this.#addWaiting(component, text, lane);
      this.#deps.onUnreachable(text);
      return false;
    }
    this.#acquire(text, key);
    return true;
  }

  /** Takes a slot for a run that is already active, regardless of the limits. */
  acquire(key: ComponentKey): void {
    if (!this.#slots.has(keyText(key))) this.#acquire(keyText(key), key);
  }

  /** Releases the slot of a key, if it has one. Re-admits one waiting key of its component, and all waiting keys of its entry. */
  release(text: string): void {
    const key = this.#slots.get(text);
    if (!key) return;
    this.#slots.delete(text);
    addToCount(this.#ofComponent, key.component, -1);
    addToCount(this.#ofEntry, key.entryUid, -1);
    this.#wakeNext(key.component);
    this.entryChanged(key.entryUid);
  }

  /**
   * Removes a dropped key from the waiting lists and re-admits it, so that the queue can finish it. The caller must still release its slot.
   */
  drop(key: ComponentKey): void {
    const text = keyText(key);
    this.#removeWaiting(text, key);
    for (const limitedBy of [key.component, key.entryUid]) {
      if (this.#waiting.get(limitedBy)?.every(({ size }) => size === 0)) this.#waiting.delete(limitedBy);
    }
    this.#deps.wake([text]);
  }

  /** Re-admits the waiting keys of an entry: its limit may have been lifted. */
  entryChanged(entryUid: string): void {
    this.#wakeAll(entryUid);
  }

  /** Re-admits waiting keys of a component. `probe`: one key, because its breaker admits a probe. `closed`: all keys. */
  componentChanged(component: string, how: 'probe' | 'closed'): void {
    if (how === 'probe') this.#wakeNext(component);
    else this.#wakeAll(component);
  }

  /** Number of slots that keys of a component have. */
  running(component: string): number {
    return this.#ofComponent.get(component) ?? 0;
  }

  /** Removes all slots and waiting keys without re-admitting any. */
  clear(): void {
    for (const map of [this.#slots, this.#ofComponent, this.#ofEntry, this.#waiting]) map.clear();
  }

  #maxConcurrent(component: string): number {
    return this.#deps.registrations.get(component)?.maxConcurrent ?? 0;
  }

  #acquire(text: string, key: ComponentKey): void {
    // The key no longer waits, so another key gets the next slot.
    this.#removeWaiting(text, key);
    this.#slots.set(text, key);
    addToCount(this.#ofComponent, key.component, 1);
    addToCount(this.#ofEntry, key.entryUid, 1);
  }

  #addWaiting(limitedBy: string, text: string, lane: number): void {
    const waiting = this.#waiting.get(limitedBy) ?? Array.from({ length: laneCount }, () => new Set<string>());
    this.#waiting.set(limitedBy, waiting);
    for (const keys of waiting) keys.delete(text);
    waiting[Math.min(lane, laneCount - 1)]?.add(text);
  }

  #removeWaiting(text: string, { component, entryUid }: ComponentKey): void {
    for (const limitedBy of [component, entryUid])
      for (const lane of this.#waiting.get(limitedBy) ?? []) lane.delete(text);
  }

  /** Re-admits the first waiting key of a component in the most urgent lane. */
  #wakeNext(component: string): void {
    for (const lane of this.#waiting.get(component) ?? []) {
      for (const text of lane) {
        lane.delete(text);
        this.#deps.wake([text]);
        return;
      }
    }
  }

  #wakeAll(limitedBy: string): void {
    const waiting = this.#waiting.get(limitedBy);
    this.#waiting.delete(limitedBy);
    for (const lane of waiting ?? []) if (lane.size > 0) this.#deps.wake(lane);
  }
}

/** Adds to a count and removes it at zero, so that the map does not grow forever. @testing */
export function addToCount(counts: Map<string, number>, name: string, change: number): void {
  const count = (counts.get(name) ?? 0) + change;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

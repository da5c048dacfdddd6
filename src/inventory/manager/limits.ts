import { lanes } from '../core/triggers.ts';
import { type ComponentKey, keyText, parseKey } from '../key.ts';
import type { RegistrationLister } from './registrations.ts';

const laneCount = Object.keys(lanes).length;
/** Runs that were active when this replica became the leader may exceed it. */
const maxRunsPerEntry = 6;

interface LimitsDeps {
  readonly registrations: RegistrationLister;
  /** Until then, no waiting key gets a slot. */
  readonly authorizationProved: () => boolean;
  readonly isPrepared: (entryUid: string) => boolean;
  /** If the breaker is open, an admitted call counts as its probe. */
  readonly breakerAdmits: (component: string) => boolean;
  /** Undefined if the entry of the key is gone. */
  readonly laneOf: (key: string) => number | undefined;
  /** The circuit breaker of the component admits no call, so the key waits. */
  readonly onUnreachable: (key: string) => void;
  /** Re-admits waiting keys of the queue, by default all. */
  readonly wake: (keys?: Iterable<string>) => void;
}

/**
 * Limits concurrent runs of each component and each entry. A run needs a slot until it ends, also
 * an asynchronous one. A free slot goes to the most urgent lane.
 */
export class Limits {
  readonly #deps: LimitsDeps;
  readonly #slots = new Map<string, ComponentKey>();
  readonly #ofComponent = new Map<string, number>();
  readonly #ofEntry = new Map<string, number>();
  /** By the component or entry for which they wait, then by lane. */
  readonly #waiting = new Map<string, Set<string>[]>();
  /** Woken one by one for a free slot, or as a probe, which they take or pass on. */
  readonly #woken = new Set<string>();

  constructor(deps: LimitsDeps) {
    this.#deps = deps;
  }

  /** Takes a slot if the key may run; the caller releases it. A dropped key needs none. */
  admit(text: string): boolean {
    this.#woken.delete(text);
    // Of a run that another process ended.
    this.release(text);
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

  /** For a run that is already active, regardless of the limits. */
  acquire(key: ComponentKey): void {
    if (!this.#slots.has(keyText(key))) this.#acquire(keyText(key), key);
  }

  /** The key needs no slot now. Wakes one waiting key of the component, and all of the entry. */
  release(text: string): void {
    const isWoken = this.#woken.delete(text);
    const key = this.#slots.get(text);
    if (!key) {
      if (isWoken) this.#wakeNext(parseKey(text)?.component ?? '');
      return;
    }
    this.#slots.delete(text);
    addToCount(this.#ofComponent, key.component, -1);
    addToCount(this.#ofEntry, key.entryUid, -1);
    this.#wakeNext(key.component);
    this.entryChanged(key.entryUid);
  }

  /** Re-admits a dropped key, so that the queue can finish it. The caller releases its slot. */
  drop(key: ComponentKey): void {
    const text = keyText(key);
    this.#removeWaiting(text, key);
    for (const limitedBy of [key.component, key.entryUid]) {
      if (this.#waiting.get(limitedBy)?.every(({ size }) => size === 0)) this.#waiting.delete(limitedBy);
    }
    this.#deps.wake([text]);
  }

  /** Its limit may have been lifted. */
  entryChanged(entryUid: string): void {
    this.#wakeAll(entryUid);
  }

  /** `probe`: re-admits one waiting key; `closed`: all. */
  componentChanged(component: string, how: 'probe' | 'closed'): void {
    if (how === 'probe') this.#wakeNext(component);
    else this.#wakeAll(component);
  }

  running(component: string): number {
    return this.#ofComponent.get(component) ?? 0;
  }

  clear(): void {
    for (const all of [this.#slots, this.#ofComponent, this.#ofEntry, this.#waiting, this.#woken]) all.clear();
  }

  #maxConcurrent(component: string): number {
    return this.#deps.registrations.get(component)?.maxConcurrent ?? 0;
  }

  #acquire(text: string, key: ComponentKey): void {
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

  #wakeNext(component: string): void {
    for (const lane of this.#waiting.get(component) ?? []) {
      for (const text of lane) {
        lane.delete(text);
        this.#woken.add(text);
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

/** Removes a count at zero, so that the map does not grow forever. @testing */
export function addToCount(counts: Map<string, number>, name: string, change: number): void {
  const count = (counts.get(name) ?? 0) + change;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

import type { Lane } from '../../../src/inventory/core/triggers.ts';
import type { Timeline } from './timeline.ts';
import { hold } from './violation.ts';

const mostOfEntry = 6;

/** A process with its keys, as it is looked at from outside. */
interface TurnsOf {
  readonly time: Timeline;
  readonly isGuarded: boolean;
  readonly loops: ReadonlyMap<string, LoopOf>;
  isProbed(component: string): boolean;
}

interface LoopOf {
  readonly uid: string;
  readonly component: { readonly name: string };
  readonly lane: number;
  readonly inTurn: boolean;
  readonly isAtWork: boolean;
  readonly isBusy: boolean;
  readonly hasOwnRun: boolean;
}

interface Asked {
  dueAt: number;
  lane: Lane;
}

/** Who gets a turn, and when: seen from outside of the queue and of the limits. */
export class TurnChecks {
  readonly #mothership: TurnsOf;
  readonly #asked = new Map<string, Asked>();
  #passed: { readonly key: string; readonly other: string } | undefined;

  constructor(mothership: TurnsOf) {
    this.#mothership = mothership;
  }

  asked(key: string, delayMs: number, lane: Lane): void {
    const dueAt = this.#mothership.time.now + delayMs;
    const asked = this.#asked.get(key);
    if (!asked) {
      this.#asked.set(key, { dueAt, lane });
      return;
    }
    asked.dueAt = Math.min(asked.dueAt, dueAt);
    if (lane < asked.lane) asked.lane = lane;
  }

  /** When it will have its turn at the latest, slots permitting. */
  dueAt(key: string): number | undefined {
    return this.#asked.get(key)?.dueAt;
  }

  /** A key has its turn; what may come of it is not known yet. */
  taken(key: string, lane: number): void {
    this.#asked.delete(key);
    this.#passed = this.#passedBy(key, lane);
  }

  /** A run starts in the turn that was given last, or in one that has gone on for longer. */
  starts(key: string): void {
    const passed = this.#passed?.key === key ? this.#passed.other : undefined;
    hold(passed === undefined, 'I23: what somebody waits for goes first', () => `${key} before ${passed}`);
  }

  /** Whoever has waited for the same component in a more urgent lane, and might have had the slot. */
  #passedBy(key: string, turnLane: number): { readonly key: string; readonly other: string } | undefined {
    const { loops, time, isGuarded } = this.#mothership;
    const loop = loops.get(key);
    // Whose run is on has its slot already.
    if (!loop || loop.isAtWork) return undefined;
    // It stood still, and its timers ring one after the other.
    if (isGuarded) return undefined;
    const lane = Math.min(turnLane, loop.lane);
    const { name } = loop.component;
    // Whoever comes when a probe may be made, makes it.
    if (this.#mothership.isProbed(name)) return undefined;
    for (const [other, asked] of this.#asked) {
      if (asked.lane >= lane || asked.dueAt >= time.now) continue;
      const waiting = loops.get(other);
      // What was more urgent of it may be done.
      if (waiting && waiting.lane >= lane) continue;
      if (!waiting || waiting.inTurn || waiting.component.name !== name) continue;
      let ofEntry = 0;
      for (const one of loops.values()) if (one.uid === waiting.uid && one.isBusy) ofEntry += 1;
      if (ofEntry < mostOfEntry) return { key, other };
    }
    return undefined;
  }

  /** A call is about to be made, by a process whose own runs count. */
  called(uid: string, component: string, maxConcurrent: number): void {
    let [ofComponent, ofEntry] = [0, 0];
    for (const loop of this.#mothership.loops.values()) {
      if (!loop.hasOwnRun) continue;
      if (loop.component.name === component) ofComponent += 1;
      if (loop.uid === uid) ofEntry += 1;
    }
    hold(ofComponent <= maxConcurrent, 'I13: a component has no more runs than it wants', () => `${uid}/${component}`);
    hold(ofEntry <= mostOfEntry, 'I13: an entry has at most six runs', () => `${uid}/${component}`);
  }
}

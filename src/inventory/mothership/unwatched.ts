import { jittered } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { lanes, trigger, triggerReasons } from '../core/triggers.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { Registration } from '../registration.ts';
import type { Feed } from './feed.ts';
import type { Loops } from './loops.ts';

export interface UnwatchedDeps {
  readonly loops: () => Loops | undefined;
  readonly trigger: Feed['trigger'];
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** A component whose watches are not to be relied on runs at least as often as this, milliseconds. */
const longestIntervalMs = 300_000;
/** Clusters get lost together; their components need not come together. */
const jitter = 0.1;

/** When a component was last asked because of this, monotonic, and how long after that it is again; milliseconds. */
interface Asked {
  readonly at: number;
  readonly periodMs: number;
}

/** What the watches of other clusters do not tell while they are down is found out by running more often. */
export class Unwatched {
  readonly #deps: UnwatchedDeps;
  /** By entry and component. */
  readonly #asked = new Map<string, Map<string, Asked>>();

  constructor(deps: UnwatchedDeps) {
    this.#deps = deps;
  }

  /** Of an entry whose watches are down: triggers the components whose time it is. Milliseconds until the next one's; Infinity: none. */
  look(entryUid: string, components: readonly Registration[]): number {
    const before = this.#asked.get(entryUid);
    const asked = new Map<string, Asked>();
    this.#asked.set(entryUid, asked);
    let leftMs = Number.POSITIVE_INFINITY;
    for (const { name, intervalMs } of components) {
      if (intervalMs <= longestIntervalMs) continue;
      const key = { entryUid, component: name };
      let last = before?.get(name) ?? this.#now();
      if (this.#leftMs(key, last) <= 0) {
        last = this.#now();
        this.#deps.trigger(key, trigger(triggerReasons.remote, { about: 'unwatched', lane: lanes.time }));
      }
      asked.set(name, last);
      leftMs = Math.min(leftMs, this.#leftMs(key, last));
    }
    return leftMs;
  }

  /** Its watches are fine, or it is gone. */
  forget(entryUid: string): void {
    this.#asked.delete(entryUid);
  }

  clear(): void {
    this.#asked.clear();
  }

  #now(): Asked {
    const { clock, random } = this.#deps;
    return { at: clock.monotonic(), periodMs: jittered(longestIntervalMs, jitter, random) };
  }

  /** Any start counts, whatever it was for. */
  #leftMs(key: ComponentKey, { at, periodMs }: Asked): number {
    const { clock, loops } = this.#deps;
    const lastStart = loops()?.get(keyText(key))?.state.lastStart ?? Number.NEGATIVE_INFINITY;
    return Math.max(at, lastStart) + periodMs - clock.monotonic();
  }
}

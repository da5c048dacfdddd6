import type { KubeObject } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import { compareResourceVersions } from '../../kube/resource-version.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { Projection, SyncedObject } from './synced-object.ts';

/** How long an answer of the API server counts for more than a watch that does not show it. */
export const UNSEEN_MS = 10_000;

export interface OwnWritesOptions {
  /** What the watch has shown. */
  readonly seen: (key: string) => SyncedObject | undefined;
  readonly project: Projection;
  readonly clock: Clock;
}

/**
 * One side's objects as the watch has shown them, and newer where an answer to one of our calls was: without that every plan between
 * a write and its echo would make the write again. `observe` must be called with every event of the watch.
 */
export class OwnWrites {
  readonly #options: OwnWritesOptions;
  readonly #answers = new Map<string, { readonly view: SyncedObject; readonly untilMs: number }>();
  readonly #going = new Map<string, { readonly uid: string; readonly untilMs: number }>();
  /** uids that a call did not find any more: they never come back, whatever the watch still shows. */
  readonly #gone = new Map<string, string>();
  /** Keys with a call under way, and what was seen to go meanwhile. */
  readonly #calls = new Map<string, Set<string>>();

  constructor(options: OwnWritesOptions) {
    this.#options = options;
  }

  get(key: string): SyncedObject | undefined {
    const seen = this.#seen(key);
    const answer = this.#answers.get(key);
    if (!answer) return seen;
    if (answer.untilMs > this.#options.clock.monotonic() && !supersedes(seen, answer.view)) return answer.view;
    this.#answers.delete(key);
    return seen;
  }

  /** Makes a call that answers with the object as it is now. */
  async call(key: string, call: () => Promise<KubeObject>): Promise<SyncedObject> {
    const gone = new Set<string>();
    this.#calls.set(key, gone);
    try {
      const view = this.#options.project(await call());
      if (!gone.has(view.uid) && !supersedes(this.#seen(key), view)) {
        this.#answers.set(key, { view, untilMs: this.#untilMs() });
      }
      return view;
    } finally {
      this.#calls.delete(key);
    }
  }

  /** Its deletion was asked for and granted. */
  going(key: string, uid: string): void {
    this.#going.set(key, { uid, untilMs: this.#untilMs() });
  }

  /** The API server does not know it any more. */
  gone(key: string, uid: string): void {
    this.#answers.delete(key);
    this.#going.delete(key);
    if (this.#options.seen(key)?.uid === uid) this.#gone.set(key, uid);
  }

  isGoing(key: string, uid: string): boolean {
    const going = this.#going.get(key);
    return going?.uid === uid && going.untilMs > this.#options.clock.monotonic();
  }

  /** Whether something here still has to be confirmed by the watch. */
  isUnseen(key: string): boolean {
    const nowMs = this.#options.clock.monotonic();
    for (const kept of [this.#answers, this.#going]) {
      const until = kept.get(key)?.untilMs;
      if (until !== undefined && until <= nowMs) kept.delete(key);
    }
    return this.#answers.has(key) || this.#going.has(key);
  }

  observe(event: StoreEvent<SyncedObject>): void {
    const { key } = event;
    if (event.type !== 'deleted') {
      const answer = this.#answers.get(key);
      if (answer && supersedes(event.now, answer.view)) this.#answers.delete(key);
      return;
    }
    this.#calls.get(key)?.add(event.before.uid);
    if (this.#answers.get(key)?.view.uid === event.before.uid) this.#answers.delete(key);
    if (this.#going.get(key)?.uid === event.before.uid) this.#going.delete(key);
    if (this.#gone.get(key) === event.before.uid) this.#gone.delete(key);
  }

  /** Believes the watch again, but for what is gone for good. */
  forget(key: string): void {
    this.#answers.delete(key);
    this.#going.delete(key);
  }

  clear(): void {
    this.#answers.clear();
    this.#going.clear();
    this.#gone.clear();
    this.#calls.clear();
  }

  #seen(key: string): SyncedObject | undefined {
    const seen = this.#options.seen(key);
    return seen && seen.uid === this.#gone.get(key) ? undefined : seen;
  }

  #untilMs(): number {
    return this.#options.clock.monotonic() + UNSEEN_MS;
  }
}

/** Whether the watch has shown the answer, or something later. Versions without an order tell nothing: then the watch is believed. */
function supersedes(seen: SyncedObject | undefined, answer: SyncedObject): boolean {
  if (!seen) return false;
  const order = compareResourceVersions(seen.resourceVersion, answer.resourceVersion);
  return order === undefined || order >= 0;
}

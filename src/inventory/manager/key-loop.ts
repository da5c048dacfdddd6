import { deferred } from '../../kit/promises.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { StoredRecord } from '../core/run-record.ts';
import type { KeyState } from '../core/step.ts';
import { lanes, type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { EventOf } from './entry-snapshot.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import { KeyMemory } from './key-memory.ts';
import { KeySteps } from './key-steps.ts';

/** The life of one key: what is heard of it becomes events, one after the other, and what could not be handled is handled again. */
export class KeyLoop {
  readonly #work: KeyLoopDeps;
  readonly #memory: KeyMemory;
  readonly #steps: KeySteps;

  constructor(key: ComponentKey, work: KeyLoopDeps) {
    this.#work = work;
    this.#memory = new KeyMemory(key);
    this.#steps = new KeySteps(this.#memory, work);
  }

  get key(): ComponentKey {
    return this.#memory.key;
  }

  get text(): string {
    return this.#memory.text;
  }

  get state(): KeyState {
    return this.#memory.state;
  }

  /** The lane that it waits in. */
  get lane(): number {
    return this.state.pending?.lane ?? lanes.time;
  }

  trigger(trigger: Trigger): void {
    this.#steps.do(() => {
      if (trigger.atMs === undefined) this.#memory.want(trigger.lane, this.#work.clock.monotonic());
      return this.#trigger(trigger);
    });
  }

  /**
   * The entry has other content. Its record does not tell yet what an outcome misses that is being stored at this moment; so whether
   * that has come is looked up once it does.
   */
  contentChanged(): void {
    if (!this.#steps.isBusy) return;
    this.#steps.do(() => {
      const about = this.state.stored?.record.lastOutcome?.missing[0]?.path;
      return about === undefined ? undefined : this.#trigger(trigger(triggerReasons.inputArrived, { about }));
    });
  }

  /** The record as it lies in the store, for what is not known of it yet. */
  found(stored: StoredRecord | undefined): void {
    this.#steps.do(() => (this.#isNews(stored) ? this.#found(stored) : undefined));
  }

  deleting(): void {
    this.#steps.do(() => this.#steps.take(({ inputs }) => ({ kind: 'deleting', inputs })));
  }

  /** The entry is gone, or nobody has to do with the component any more. */
  drop(): void {
    this.#memory.dropped = true;
    this.#work.limits.drop(this.key);
    this.#steps.releaseIfFree();
  }

  /** Its turn in the queue: ends when everything has come to rest, a call included. */
  async turn(): Promise<void> {
    const steps = this.#steps;
    await steps.inTurn(async () => {
      await steps.settled(() => this.#onTurn());
      await steps.answered();
      // What the answer brought about.
      await steps.settled(() => undefined);
    });
    this.#awaitLease();
  }

  /** A report of the run that is on; see `Reports`. Between events, of which it may have some of its own taken. */
  report<T>(task: (memory: KeyMemory, take: (eventOf: EventOf) => Promise<void>) => Promise<T>): Promise<T> {
    const memory = this.#memory;
    const answer = deferred<T>();
    const failed = (error: unknown): void => {
      answer.reject(error);
      // Otherwise nothing has happened yet, and it is reported again.
      if (memory.trouble === 'lost') throw error;
    };
    this.#steps.do(() => {
      if (memory.trouble === 'lost') return void answer.reject(new Error('the run is being looked at anew'));
      return task(memory, async (event) => {
        await this.#steps.take(event);
      }).then(answer.resolve, failed);
    });
    return answer.promise;
  }

  #onTurn(): Promise<unknown> | undefined {
    if (this.#steps.isCalling) return undefined;
    return this.#memory.trouble ? this.#recover() : this.#slot();
  }

  #slot(): Promise<void> | undefined {
    return this.#steps.take(({ inputs }) => ({ kind: 'slot', inputs }));
  }

  #trigger(trigger: Trigger): Promise<void> | undefined {
    return this.#steps.take(({ inputs }) => ({ kind: 'trigger', trigger, inputs }));
  }

  async #found(stored: StoredRecord | undefined): Promise<void> {
    await this.#steps.take(({ inputs }) => ({ kind: 'found', stored, inputs }));
    if (this.state.stored === stored) this.#memory.unstored = false;
    this.#memory.adopt();
  }

  #isNews(stored: StoredRecord | undefined): boolean {
    const known = this.state.stored;
    if (!stored || !known) return stored !== known;
    return stored.resourceVersion !== known.resourceVersion && !isOlder(stored.resourceVersion, known.resourceVersion);
  }

  /** As whoever begins to lead would go on with it. What came while it could not be handled was not heard: that is worth a run. */
  async #recover(): Promise<void> {
    const { failures, runs } = this.#work;
    const memory = this.#memory;
    const before = failures.count(memory);
    if (memory.trouble === 'lost') {
      memory.forget();
      memory.trouble = 'broken';
      try {
        await this.#found(runs.find(this.key));
      } catch (error) {
        memory.trouble = 'lost';
        throw error;
      }
    }
    if (this.state.wake?.reason !== triggerReasons.retry) await this.#trigger(trigger(triggerReasons.requeue));
    memory.trouble = undefined;
    await this.#slot();
    if (failures.count(memory) === before) failures.forget(memory);
  }

  /** Whatever has become of its call: a run that is still on is over with its lease. */
  #awaitLease(): void {
    const { clock, enqueue } = this.#work;
    const { dropped, trouble, state, isAtWork } = this.#memory;
    // What is broken has a time of its own for being tried again.
    if (dropped || trouble || state.leaseAt === undefined || !isAtWork) return;
    enqueue(this.text, triggerReasons.leaseOver, lanes.time, state.leaseAt - clock.monotonic());
  }
}

/** The keys that this process looks after while it leads. */
export class KeyLoops {
  readonly #work: KeyLoopDeps;
  readonly #byKey = new Map<string, KeyLoop>();
  readonly #byEntry = new Map<string, Set<KeyLoop>>();

  constructor(work: KeyLoopDeps) {
    this.#work = work;
  }

  get(text: string): KeyLoop | undefined {
    return this.#byKey.get(text);
  }

  /** Begins it if need be. */
  of(key: ComponentKey): KeyLoop {
    const text = keyText(key);
    const known = this.#byKey.get(text);
    if (known) return known;
    const loop = new KeyLoop(key, this.#work);
    this.#byKey.set(loop.text, loop);
    const siblings = this.#byEntry.get(key.entryUid) ?? new Set();
    siblings.add(loop);
    this.#byEntry.set(key.entryUid, siblings);
    return loop;
  }

  ofEntry(entryUid: string): Iterable<KeyLoop> {
    return this.#byEntry.get(entryUid) ?? [];
  }

  all(): Iterable<KeyLoop> {
    return this.#byKey.values();
  }

  drop(key: ComponentKey): void {
    const loop = this.#byKey.get(keyText(key));
    if (!loop) return;
    this.#byKey.delete(loop.text);
    loop.drop();
    const siblings = this.#byEntry.get(key.entryUid);
    siblings?.delete(loop);
    if (siblings?.size === 0) this.#byEntry.delete(key.entryUid);
  }

  dropEntry(entryUid: string): void {
    for (const { key } of [...this.ofEntry(entryUid)]) this.drop(key);
  }
}

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
  readonly #deps: KeyLoopDeps;
  readonly #memory: KeyMemory;
  readonly #steps: KeySteps;

  constructor(key: ComponentKey, deps: KeyLoopDeps) {
    this.#deps = deps;
    this.#memory = new KeyMemory(key);
    this.#steps = new KeySteps(this.#memory, deps);
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
    this.#steps.submit(() => {
      if (trigger.atMs === undefined) this.#memory.noteTrigger(trigger.lane, this.#deps.clock.monotonic());
      return this.#trigger(trigger);
    });
  }

  /**
   * The entry has other content. Its record does not tell yet what an outcome misses that is being stored at this moment; so whether
   * that has come is looked up once it does.
   */
  contentChanged(): void {
    if (!this.#steps.isBusy) return;
    this.#steps.submit(() => {
      const about = this.state.stored?.record.lastOutcome?.missing[0]?.path;
      return about === undefined ? undefined : this.#trigger(trigger(triggerReasons.inputArrived, { about }));
    });
  }

  /** The record as it lies in the store, for what is not known of it yet. */
  recordChanged(stored: StoredRecord | undefined): void {
    this.#steps.submit(() => (this.#isNewer(stored) ? this.#recordChanged(stored) : undefined));
  }

  deleting(): void {
    this.#steps.submit(() => this.#steps.handle(({ inputs }) => ({ kind: 'deleting', inputs })));
  }

  /** The entry is gone, or nobody has to do with the component any more. */
  drop(): void {
    this.#memory.dropped = true;
    this.#deps.limits.drop(this.key);
    this.#steps.releaseSlotIfIdle();
  }

  /** Its turn in the queue: ends when everything has come to rest, a call included. */
  async reconcile(): Promise<void> {
    const steps = this.#steps;
    await steps.holdingSlot(async () => {
      await steps.run(() => this.#onDequeued());
      await steps.callAnswered();
      // What the answer brought about.
      await steps.run(() => undefined);
    });
    this.#enqueueDeadline();
  }

  /** A report of the run that is on; see `Reports`. Between events, of which it may have some of its own taken. */
  report<T>(task: (memory: KeyMemory, take: (eventOf: EventOf) => Promise<void>) => Promise<T>): Promise<T> {
    const memory = this.#memory;
    const answer = deferred<T>();
    const failed = (error: unknown): void => {
      answer.reject(error);
      // Otherwise nothing has happened yet, and it is reported again.
      if (memory.recovery === 'reload') throw error;
    };
    this.#steps.submit(() => {
      if (memory.recovery === 'reload') return void answer.reject(new Error('the run is being looked at anew'));
      return task(memory, async (event) => {
        await this.#steps.handle(event);
      }).then(answer.resolve, failed);
    });
    return answer.promise;
  }

  #onDequeued(): Promise<unknown> | undefined {
    if (this.#steps.isCalling) return undefined;
    return this.#memory.recovery ? this.#recover() : this.#slot();
  }

  #slot(): Promise<void> | undefined {
    return this.#steps.handle(({ inputs }) => ({ kind: 'slot', inputs }));
  }

  #trigger(trigger: Trigger): Promise<void> | undefined {
    return this.#steps.handle(({ inputs }) => ({ kind: 'trigger', trigger, inputs }));
  }

  async #recordChanged(stored: StoredRecord | undefined): Promise<void> {
    await this.#steps.handle(({ inputs }) => ({ kind: 'recordChanged', stored, inputs }));
    if (this.state.stored === stored) this.#memory.unstored = false;
    this.#memory.adopt();
  }

  #isNewer(stored: StoredRecord | undefined): boolean {
    const known = this.state.stored;
    if (!stored || !known) return stored !== known;
    return stored.resourceVersion !== known.resourceVersion && !isOlder(stored.resourceVersion, known.resourceVersion);
  }

  /** As whoever begins to lead would go on with it. What came while it could not be handled was not heard: that is worth a run. */
  async #recover(): Promise<void> {
    const { failures, runs } = this.#deps;
    const memory = this.#memory;
    const before = failures.count(memory);
    if (memory.recovery === 'reload') {
      memory.reset();
      memory.recovery = 'retry';
      try {
        await this.#recordChanged(runs.find(this.key));
      } catch (error) {
        memory.recovery = 'reload';
        throw error;
      }
    }
    if (this.state.wake?.reason !== triggerReasons.retry) await this.#trigger(trigger(triggerReasons.requeue));
    memory.recovery = undefined;
    await this.#slot();
    if (failures.count(memory) === before) failures.forget(memory);
  }

  /** Whatever has become of its call: a run that is still on is over with its lease. */
  #enqueueDeadline(): void {
    const { clock, enqueue } = this.#deps;
    const { dropped, recovery, state, hasActiveRun } = this.#memory;
    // What is broken has a time of its own for being tried again.
    if (dropped || recovery || state.deadlineAt === undefined || !hasActiveRun) return;
    enqueue(this.text, triggerReasons.leaseOver, lanes.time, state.deadlineAt - clock.monotonic());
  }
}

/** The keys that this process looks after while it leads. */
export class KeyLoops {
  readonly #deps: KeyLoopDeps;
  readonly #byKey = new Map<string, KeyLoop>();
  readonly #byEntry = new Map<string, Set<KeyLoop>>();

  constructor(deps: KeyLoopDeps) {
    this.#deps = deps;
  }

  get(text: string): KeyLoop | undefined {
    return this.#byKey.get(text);
  }

  /** Begins it if need be. */
  of(key: ComponentKey): KeyLoop {
    const text = keyText(key);
    const known = this.#byKey.get(text);
    if (known) return known;
    const loop = new KeyLoop(key, this.#deps);
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

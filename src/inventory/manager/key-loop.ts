import { deferred } from '../../kit/promises.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { KeyState } from '../core/key-state.ts';
import type { StoredRecord } from '../core/run-record.ts';
import { lanes, type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { EventFactory } from './entry-snapshot.ts';
import { KeyExecutor } from './key-executor.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import { KeyMemory } from './key-memory.ts';

/** Runs one key: converts inputs to events, handles them one at a time, and retries failures. */
export class KeyLoop {
  readonly #deps: KeyLoopDeps;
  readonly #memory: KeyMemory;
  readonly #executor: KeyExecutor;

  constructor(key: ComponentKey, deps: KeyLoopDeps) {
    this.#deps = deps;
    this.#memory = new KeyMemory(key);
    this.#executor = new KeyExecutor(this.#memory, deps);
  }

  get key(): ComponentKey {
    return this.#memory.key;
  }

  /** Text form of the key. */
  get keyText(): string {
    return this.#memory.keyText;
  }

  get state(): KeyState {
    return this.#memory.state;
  }

  /** Why the run that the key waits for could not start, if the cause has a code, such as `NameTaken`. */
  get startProblem(): { readonly reason: string; readonly message: string } | undefined {
    const isWaiting = this.state.phase === 'queued' || this.state.phase === 'starting';
    return isWaiting ? this.#memory.startProblem : undefined;
  }

  /** The lane that the key waits in: the lane of its pending triggers, or `time` if it has none. */
  get lane(): number {
    return this.state.pending?.lane ?? lanes.time;
  }

  /** Handles a trigger after the pending events. */
  trigger(trigger: Trigger): void {
    this.#executor.submit(() => {
      if (trigger.atMs === undefined) this.#memory.noteTrigger(trigger.lane, this.#deps.clock.monotonic());
      return this.#trigger(trigger);
    });
  }

  /**
   * Handles a change of the entry's content while other events are pending. A pending event may be an outcome whose missing inputs the
   * record does not contain yet. The key checks the missing inputs after it.
   */
  contentChanged(): void {
    if (!this.#executor.isBusy) return;
    this.#executor.submit(() => {
      const detail = this.state.stored?.record.lastOutcome?.missing[0]?.path;
      return detail === undefined ? undefined : this.#trigger(trigger(triggerReasons.inputArrived, { detail }));
    });
  }

  /** Handles a record from the store if it is newer than the record of the state. `stored` is undefined if the store has no record. */
  recordChanged(stored: StoredRecord | undefined): void {
    this.#executor.submit(() => (this.#isNewer(stored) ? this.#recordChanged(stored) : undefined));
  }

  /** Shows in the record that a due run waits, because the circuit breaker of the component's endpoint admits no call. */
  endpointUnavailable(): void {
    this.#executor.submit(() => this.#executor.handle(({ inputs }) => ({ kind: 'endpointUnavailable', inputs })));
  }

  /** Handles the deletionTimestamp of the entry. */
  deleting(): void {
    this.#executor.submit(() => this.#executor.handle(({ inputs }) => ({ kind: 'deleting', inputs })));
  }

  /**
   * Drops the key after the watch reported the deletion of its entry. Later events have no effect. An active run is not recorded as ended.
   */
  drop(): void {
    this.#memory.dropped = true;
    this.#deps.limits.drop(this.key);
    this.#executor.releaseSlotIfIdle();
  }

  /**
   * Reconciles the key. Resolves after the event `dequeued` and the answer of its call are handled. Never rejects: a failure retries the
   * key.
   */
  async reconcile(): Promise<void> {
    const executor = this.#executor;
    await executor.withSlot(async () => {
      await executor.run(() => this.#onDequeued());
      await executor.callAnswered();
      // Wait for the effects of the answer.
      await executor.run(() => undefined);
    });
    this.#enqueueDeadline();
  }

  /**
   * Runs `task` for a report, between two events. `task` gets `handle`, with which it handles events of the key. Rejects if `task` fails or
   * the key must be reloaded.
   */
  report<T>(task: (memory: KeyMemory, handle: (eventOf: EventFactory) => Promise<void>) => Promise<T>): Promise<T> {
    const memory = this.#memory;
    const result = deferred<T>();
    const failed = (error: unknown): void => {
      result.reject(error);
      // Start the recovery if effects may be missing. In other cases the report changed nothing, and the component reports again.
      if (memory.recovery === 'reload') throw error;
    };
    this.#executor.submit(() => {
      if (memory.recovery === 'reload') return void result.reject(new Error('the state of the run is being reloaded'));
      return task(memory, async (event) => {
        await this.#executor.handle(event);
      }).then(result.resolve, failed);
    });
    return result.promise;
  }

  #onDequeued(): Promise<unknown> | undefined {
    if (this.#executor.isCalling) return undefined;
    return this.#memory.recovery ? this.#recover() : this.#dequeued();
  }

  #dequeued(): Promise<void> | undefined {
    return this.#executor.handle(({ inputs }) => ({ kind: 'dequeued', inputs }));
  }

  #trigger(trigger: Trigger): Promise<void> | undefined {
    return this.#executor.handle(({ inputs }) => ({ kind: 'trigger', trigger, inputs }));
  }

  async #recordChanged(stored: StoredRecord | undefined): Promise<void> {
    await this.#executor.handle(({ inputs }) => ({ kind: 'recordChanged', stored, inputs }));
    if (this.state.stored === stored) this.#memory.unstored = false;
    this.#memory.adopt();
  }

  #isNewer(stored: StoredRecord | undefined): boolean {
    const current = this.state.stored;
    if (!stored || !current) return stored !== current;
    return (
      stored.resourceVersion !== current.resourceVersion && !isOlder(stored.resourceVersion, current.resourceVersion)
    );
  }

  /** Recovers a failed key: reloads it if necessary, and runs the component again, because events may have been lost. */
  async #recover(): Promise<void> {
    const { failures, runs } = this.#deps;
    const memory = this.#memory;
    const failuresBefore = failures.count(memory);
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
    await this.#dequeued();
    if (failures.count(memory) === failuresBefore) failures.forget(memory);
  }

  /** Enqueues the key for the deadline of its current run, even if the call failed. */
  #enqueueDeadline(): void {
    const { clock, enqueue } = this.#deps;
    const { dropped, recovery, state, hasActiveRun } = this.#memory;
    // The retry of a failed key is already enqueued.
    if (dropped || recovery || state.deadlineAt === undefined || !hasActiveRun) return;
    enqueue(this.keyText, triggerReasons.leaseOver, lanes.time, state.deadlineAt - clock.monotonic());
  }
}

/** All key loops while this replica is the leader. */
export class KeyLoops {
  readonly #deps: KeyLoopDeps;
  readonly #byKey = new Map<string, KeyLoop>();
  readonly #byEntry = new Map<string, Set<KeyLoop>>();

  constructor(deps: KeyLoopDeps) {
    this.#deps = deps;
  }

  /** `text`: text form of the key. Undefined if there is no loop for it. */
  get(text: string): KeyLoop | undefined {
    return this.#byKey.get(text);
  }

  /** Returns the loop of a key; creates it if necessary. */
  of(key: ComponentKey): KeyLoop {
    const text = keyText(key);
    const existing = this.#byKey.get(text);
    if (existing) return existing;
    const loop = new KeyLoop(key, this.#deps);
    this.#byKey.set(loop.keyText, loop);
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

  /** Drops the loops of a deleted entry. */
  dropEntry(entryUid: string): void {
    const loops = this.#byEntry.get(entryUid) ?? new Set();
    for (const loop of loops) {
      this.#byKey.delete(loop.keyText);
      loops.delete(loop);
      loop.drop();
    }
    this.#byEntry.delete(entryUid);
  }
}

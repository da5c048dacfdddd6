import { isOlder } from '../../kube/resource-version.ts';
import type { KeyState } from '../core/key-state.ts';
import type { StoredRecord } from '../core/run-record.ts';
import { lanes, type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { EventFactory } from './entry-snapshot.ts';
import { KeyExecutor } from './key-executor.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import { KeyMemory } from './key-memory.ts';

/** Runs one key: turns what happens into events, and retries failures. */
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

  get keyText(): string {
    return this.#memory.keyText;
  }

  get state(): KeyState {
    return this.#memory.state;
  }

  /** Why the awaited run could not start, if the cause has a code, such as `NameTaken`. */
  get startProblem(): { readonly reason: string; readonly message: string } | undefined {
    const isWaiting = this.state.phase === 'queued' || this.state.phase === 'starting';
    return isWaiting ? this.#memory.startProblem : undefined;
  }

  get lane(): number {
    return this.state.pending?.lane ?? lanes.time;
  }

  trigger(trigger: Trigger): void {
    this.#executor.submit(() => {
      if (trigger.atMs === undefined) this.#memory.noteTrigger(trigger.lane, this.#deps.clock.monotonic());
      return this.#trigger(trigger);
    });
  }

  /** A pending event may be an outcome whose missing inputs now hold; checks them after it. */
  contentChanged(): void {
    if (!this.#executor.isBusy) return;
    this.#executor.submit(() => {
      const detail = this.state.stored?.record.lastOutcome?.missing[0]?.path;
      return detail === undefined ? undefined : this.#trigger(trigger(triggerReasons.inputArrived, { detail }));
    });
  }

  /** Ignores a record that is not newer than that of the state. */
  recordChanged(stored: StoredRecord | undefined): void {
    this.#executor.submit(() => (this.#isNewer(stored) ? this.#recordChanged(stored) : undefined));
  }

  /** Records that a due run waits, because the circuit breaker admits no call. */
  endpointUnavailable(): void {
    this.#executor.submit(() => this.#executor.handle(({ inputs }) => ({ kind: 'endpointUnavailable', inputs })));
  }

  deleting(): void {
    this.#executor.submit(() => this.#executor.handle(({ inputs }) => ({ kind: 'deleting', inputs })));
  }

  /** The entry is gone: later events have no effect, and an active run is not recorded as ended. */
  drop(): void {
    this.#memory.dropped = true;
    this.#deps.limits.drop(this.key);
    this.#executor.releaseSlotIfIdle();
  }

  /** Resolves after the key is handled and its call answered. Never rejects: a failure retries. */
  async reconcile(): Promise<void> {
    const executor = this.#executor;
    await executor.withSlot(async () => {
      await executor.run(() => this.#onDequeued());
      await executor.callAnswered();
      // The effects of the answer.
      await executor.run(() => undefined);
    });
    this.#enqueueDeadline();
  }

  /** Runs `task` for a report, between two events. Rejects if it fails or a reload is due. */
  report<T>(task: (memory: KeyMemory, handle: (eventOf: EventFactory) => Promise<void>) => Promise<T>): Promise<T> {
    const memory = this.#memory;
    const result = Promise.withResolvers<T>();
    const failed = (error: unknown): void => {
      result.reject(error);
      // Otherwise the report changed nothing, and the component reports again.
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

  /** Reloads the key if necessary, and runs the component again, because events may be lost. */
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

  /** Even if the call failed. */
  #enqueueDeadline(): void {
    const { clock, enqueue } = this.#deps;
    const { dropped, recovery, state, hasActiveRun } = this.#memory;
    if (dropped || recovery || state.deadlineAt === undefined || !hasActiveRun) return;
    enqueue(this.keyText, triggerReasons.leaseOver, lanes.time, state.deadlineAt - clock.monotonic());
  }
}

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

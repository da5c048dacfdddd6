import { sleep } from '../../kit/clock.ts';
import type { Effect, KeyEvent } from '../core/key-state.ts';
import { step } from '../core/steps/step.ts';
import { lanes, triggerReasons } from '../core/triggers.ts';
import { isAbandoned } from '../entry.ts';
import { standInRegistration } from '../registration.ts';
import { callComponent, replyEvent } from './component-call.ts';
import type { ComponentSnapshot, EventFactory } from './entry-snapshot.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import type { KeyMemory } from './key-memory.ts';
import { isWrite, type Retry, write } from './key-writes.ts';

/**
 * Handles the events of one key, one at a time, with their effects before the next event. Only
 * calls to components run in the background; their answers are events.
 */
export class KeyExecutor {
  readonly #deps: KeyLoopDeps;
  readonly #memory: KeyMemory;
  #mailbox: Mailbox | undefined;
  #call: PromiseWithResolvers<void> | undefined;
  #keepsSlot = false;

  constructor(memory: KeyMemory, deps: KeyLoopDeps) {
    this.#memory = memory;
    this.#deps = deps;
  }

  get isBusy(): boolean {
    return this.#mailbox !== undefined;
  }

  get isCalling(): boolean {
    return this.#call !== undefined;
  }

  /** At once without a pending call. */
  async callAnswered(): Promise<void> {
    await this.#call?.promise;
  }

  /** After the pending tasks. A failure retries the key while this replica leads. */
  submit(task: Task): void {
    this.#mailbox ??= new Mailbox({
      onError: (error) => {
        if (!this.#deps.signal.aborted) this.#onError(error);
      },
      onEmpty: () => {
        this.#mailbox = undefined;
        this.releaseSlotIfIdle();
      },
    });
    this.#mailbox.submit(task);
  }

  /** Resolves when the task has ended, even if it failed. */
  run(task: Task): Promise<void> {
    const settled = Promise.withResolvers<void>();
    this.submit(task);
    this.submit(() => void settled.resolve());
    return settled.promise;
  }

  /** Keeps the slot of the key (see `Limits`) until `task` has ended. */
  async withSlot(task: () => Promise<void>): Promise<void> {
    this.#keepsSlot = true;
    try {
      await task();
    } finally {
      this.#keepsSlot = false;
      this.releaseSlotIfIdle();
    }
  }

  /**
   * Handles one event, at once if no effect is a write. Drops it if the key was dropped or must be
   * reloaded, its entry is unknown, or it is neither registered nor abandoned.
   */
  handle(eventOf: EventFactory): Promise<void> | undefined {
    const snapshot = this.#snapshot();
    if (!snapshot) return undefined;
    const effects = this.#step(eventOf(snapshot), snapshot);
    if (effects.some(isWrite)) return this.#execute(effects, snapshot);
    for (const effect of effects) this.#executeAtOnce(effect, snapshot);
    return undefined;
  }

  #snapshot(): ComponentSnapshot | undefined {
    const { snapshots, registrations } = this.#deps;
    const memory = this.#memory;
    if (memory.dropped || memory.recovery === 'reload') return undefined;
    const { entryUid, component } = memory.key;
    memory.registration = registrations.get(component) ?? memory.registration;
    const entrySnapshot = snapshots.snapshot(entryUid);
    if (!entrySnapshot) return undefined;
    // For a component whose registration this process never read.
    const standIn = isAbandoned(entrySnapshot.entry, component) ? standInRegistration(component) : undefined;
    const registration = memory.registration ?? standIn;
    if (!registration) return undefined;
    const inputs = snapshots.inputs(entrySnapshot, registration, memory.state.stored);
    return { ...entrySnapshot, registration, inputs };
  }

  #step(event: KeyEvent, { entry, registration }: ComponentSnapshot): readonly Effect[] {
    const { clock, random, limits } = this.#deps;
    const memory = this.#memory;
    const { state, effects } = step(memory.state, event, {
      nowMs: clock.now(),
      monotonicMs: clock.monotonic(),
      random,
      entry: entry.ref,
      registration,
    });
    memory.state = state;
    if (memory.hasActiveRun) {
      limits.acquire(memory.key);
    } else {
      // The run references a snapshot of the entry; free it.
      memory.run = undefined;
      if (state.phase === 'idle') memory.oldestTrigger = undefined;
    }
    return effects;
  }

  async #execute(effects: readonly Effect[], snapshot: ComponentSnapshot): Promise<void> {
    const events: EventFactory[] = [];
    let stopped = false;
    try {
      for (const effect of effects) {
        if (!isWrite(effect)) {
          // After a failed write, skip the call, but still enqueue and report.
          if (!stopped || effect.kind !== 'call') this.#executeAtOnce(effect, snapshot);
        } else if (!stopped) {
          const { event, stops, retry } = await write(this.#deps, this.#memory, effect, snapshot);
          if (event) events.push(event);
          if (retry) this.#retryLater(retry);
          stopped = stops === true;
        }
      }
      for (const event of events) await this.handle(event);
    } catch (error) {
      this.#memory.recovery = 'reload';
      throw error;
    }
  }

  /** Repeats a rejected write between other events, while this replica leads. */
  #retryLater({ delayMs, attempt }: Retry): void {
    const { clock, signal } = this.#deps;
    const task = async (): Promise<void> => {
      const { event, retry } = await attempt();
      if (event) await this.handle(event);
      if (retry) this.#retryLater(retry);
    };
    sleep(clock, delayMs, signal).then(
      () => this.submit(task),
      () => undefined,
    );
  }

  #executeAtOnce(effect: Effect, snapshot: ComponentSnapshot): void {
    const { failures, enqueue, recordCallResult, reporter } = this.#deps;
    const { key, keyText } = this.#memory;
    switch (effect.kind) {
      case 'enqueue': {
        // A key in a more urgent lane may wait for the slot.
        this.releaseSlotIfIdle();
        const delayMs = Math.max(effect.delayMs, failures.delayMs(this.#memory));
        enqueue(keyText, effect.reasons[0] ?? triggerReasons.requeue, effect.lane, delayMs);
        return;
      }
      case 'call':
        this.#startCall(snapshot);
        return;
      case 'recordCallResult':
        recordCallResult(key.component, effect.verdict, effect.retryAfterMs, effect.problem);
        return;
      case 'reportStatus':
        reporter.statusChanged(key);
        return;
      case 'warn':
        reporter.warn(snapshot.entry, key, effect.code, effect.message);
        return;
      default:
        return;
    }
  }

  #startCall({ entry }: ComponentSnapshot): void {
    const { run } = this.#memory;
    const answer = callComponent(this.#deps, this.#memory, entry);
    if (!answer || !run) return;
    const call = Promise.withResolvers<void>();
    this.#call = call;
    answer.then(
      (reply) =>
        this.submit(() => {
          if (this.#call === call) this.#call = undefined;
          call.resolve();
          const event = replyEvent(this.#deps, this.#memory, run, reply);
          return event && this.handle(event);
        }),
      call.resolve,
    );
  }

  #onError(error: unknown): void {
    const { reporter, failures, enqueue } = this.#deps;
    const { key, keyText } = this.#memory;
    this.#memory.setStatus(reporter.keyFailed(key, error));
    reporter.statusChanged(key);
    this.#memory.recovery ??= 'retry';
    failures.failed(this.#memory);
    enqueue(keyText, triggerReasons.requeue, lanes.time, failures.delayMs(this.#memory));
  }

  /** Not while `withSlot` or a run is active. A dropped key, or one to reload, has no run. */
  releaseSlotIfIdle(): void {
    if (this.#keepsSlot) return;
    const { dropped, recovery, hasActiveRun, keyText } = this.#memory;
    if (dropped || recovery === 'reload' || !hasActiveRun) this.#deps.limits.release(keyText);
  }
}

/** Returns undefined if the work ended at once. */
type Task = () => Promise<unknown> | undefined;

interface MailboxDeps {
  /** Later tasks continue. */
  readonly onError: (error: unknown) => void;
  readonly onEmpty: () => void;
}

/** Runs tasks one at a time, synchronously where possible. */
class Mailbox {
  readonly #deps: MailboxDeps;
  readonly #tasks: Task[] = [];
  #busy = false;

  constructor(deps: MailboxDeps) {
    this.#deps = deps;
  }

  submit(task: Task): void {
    this.#tasks.push(task);
    if (!this.#busy) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    for (let task = this.#tasks.shift(); task; task = this.#tasks.shift()) {
      try {
        const pending = task();
        if (pending) await pending;
      } catch (error) {
        this.#deps.onError(error);
      }
    }
    this.#busy = false;
    this.#deps.onEmpty();
  }
}

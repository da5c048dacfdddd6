import { alreadySatisfied } from '../../api/inventory/describe-state.ts';
import { after, done, type Reconciler, type Result, retry, retryConflict } from '../../engine/result.ts';
import type { HintSource } from '../../engine/sources/hint.ts';
import { backoffMs } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import { ApiError, isConflict, isRefused, TransportError } from '../../kube/errors.ts';
import { startedRecord, withoutCredential } from '../core/endings.ts';
import type { Extension, Facts, Step, StepOf } from '../core/facts.ts';
import { type RejectedReportCode, wakeVersion } from '../core/memory.ts';
import { isComponentAbandoned, isWanted, plan } from '../core/plan.ts';
import type { RunRecord } from '../core/run-record.ts';
import { type Lane, lanes, type Trigger, withTriggers } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import type { ComponentKey } from '../key.ts';
import type { RunStore, TokenIssuer } from '../ports.ts';
import { backoff, type ComponentCaller } from './component-caller.ts';
import type { FactsReader } from './facts-reader.ts';
import type { Limits } from './limits.ts';
import type { KeyMemory, Memories } from './memories.ts';
import { type OutputWriter, Refused } from './output-writer.ts';
import type { RunReporter } from './run-reporter.ts';

export interface RunReconcilerDeps {
  /** Aborts when leadership ends. No write starts afterwards. */
  readonly signal: AbortSignal;
  readonly facts: FactsReader;
  readonly runs: RunStore;
  readonly memories: Memories;
  readonly limits: Limits;
  readonly caller: ComponentCaller;
  readonly tokens: TokenIssuer;
  readonly outputWriter: OutputWriter;
  readonly reporter: RunReporter;
  readonly queue: HintSource;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** After the outputs and the record of a key were removed. */
  readonly onRetired: (key: ComponentKey, entry: Entry, how: { readonly abandoned: boolean }) => void;
}

/** Of the outputs of one run: a webhook or a permission may be missing only briefly. */
const maxRefusals = 5;

/** Runs a component of an entry: reads the facts, does the next step of `plan`, until it rests. */
export class RunReconciler implements Reconciler {
  readonly #deps: RunReconcilerDeps;
  readonly #mutex = new KeyMutex();

  constructor(deps: RunReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(text: string): Promise<Result> {
    const { memories, signal, clock } = this.#deps;
    const memory = memories.get(text);
    if (!memory) return done;
    try {
      if (this.isBackingOff(memory)) return after(memory.retryAt - clock.monotonic());
      await this.exclusively(memory, () => this.proceed(memory, { mayStart: true }));
      return done;
    } catch (error) {
      if (signal.aborted || memory.isDropped) return done;
      return isConflict(error) ? retryConflict(error) : retry(error);
    }
  }

  /** A step failed a moment ago: changes do not repeat it sooner. */
  isBackingOff(memory: KeyMemory): boolean {
    return memory.retryAt > this.#deps.clock.monotonic();
  }

  /** Reconciles and reports of one key do not overlap. */
  exclusively<T>(memory: KeyMemory, work: () => Promise<T>): Promise<T> {
    return this.#mutex.run(memory.text, work);
  }

  /** Does what is to do now. Of a new run, only if it `mayStart`, and after no other step. */
  async proceed(memory: KeyMemory, { mayStart }: { readonly mayStart: boolean }): Promise<void> {
    try {
      for (let isFirst = mayStart; ; isFirst = false) {
        const facts = this.#deps.facts.refresh(memory);
        if (!facts) return;
        this.#reportEnding(memory, facts.stored?.record);
        const step = plan(facts);
        this.#noteDue(memory, step);
        if (step.do === 'rest' || (step.do === 'start' && !isFirst)) {
          memory.unsure = undefined;
          this.#setProblem(memory, undefined);
          const at = step.do === 'start' ? 0 : step.at;
          if (at !== undefined && at !== Number.POSITIVE_INFINITY) this.#hint(memory, 'due', at - facts.monotonicMs);
          return;
        }
        if (!(await this.#act(facts, memory, step))) return;
        memory.failures = 0;
        memory.retryAt = Number.NEGATIVE_INFINITY;
        this.#setProblem(memory, undefined);
        this.#settleSlot(memory);
      }
    } catch (error) {
      if (!this.#deps.signal.aborted) this.#failed(memory, error);
      throw error;
    } finally {
      this.#settleSlot(memory);
    }
  }

  /** A change that may need a run. One that arrives during a run is judged at its end. */
  trigger(memory: KeyMemory, trigger: Trigger): void {
    const { clock, queue } = this.#deps;
    const nowMs = clock.now();
    const monotonicMs = clock.monotonic();
    let isNeeded = true;
    try {
      // Inputs may change and return before the key is handled.
      const facts = this.#deps.facts.refresh(memory);
      isNeeded = !facts || memory.run !== undefined || isWanted(trigger, facts, facts.stored?.record);
    } catch {
      memory.inputsChanged = true;
    }
    if (isNeeded) {
      memory.pending = withTriggers(memory.pending, [trigger], { nowMs, monotonicMs });
      if (trigger.atMs === undefined) memory.oldest ??= { lane: trigger.lane, since: monotonicMs };
    }
    queue.hint(memory.text, trigger.reason, { lane: trigger.lane, delayMs: Math.max(0, (trigger.atMs ?? 0) - nowMs) });
  }

  /** The entry is gone: an active run is not recorded as ended. */
  drop(memory: KeyMemory): void {
    const { limits, runs } = this.#deps;
    this.#reportEnding(memory, runs.find(memory.key)?.record);
    limits.drop(memory.key);
    this.#settleSlot(memory);
  }

  unreachable(text: string): void {
    const memory = this.#deps.memories.get(text);
    if (memory) memory.isUnreachable = true;
  }

  /** Stores a 202 or a heartbeat, which makes the run asynchronous. False after a conflict. */
  async extend(facts: Facts, { key, run }: KeyMemory, extension: Extension): Promise<boolean> {
    const { next, deadlineAt, heartbeatTimeoutMs } = extension;
    if (!run || (next && !(await this.#swap(facts, next)))) return false;
    run.deadlineAt = deadlineAt;
    run.heartbeatTimeoutMs = heartbeatTimeoutMs;
    if (facts.stored?.record.asynchronous === false) this.#deps.reporter.statusChanged(key);
    return true;
  }

  /** A valid heartbeat ends what the status shows of rejected reports. */
  heartbeat(memory: KeyMemory): void {
    if (!memory.rejectedReport?.shown) return;
    memory.rejectedReport = { last: undefined, shown: undefined };
    this.#deps.reporter.statusChanged(memory.key);
  }

  /** Only the first of a run changes the status and warns: a component cannot cause many writes. */
  rejected({ memory, entry, nowMs }: Facts, key: ComponentKey, code: RejectedReportCode): void {
    const { reporter } = this.#deps;
    reporter.reportRejected(key.component, code);
    const before = memory.rejectedReport;
    memory.rejectedReport = before ? { ...before, last: code } : { last: code, shown: { code, atMs: nowMs } };
    if (before) return;
    const message = `the server rejected a report of the component (${code}); the HTTP answer to the component has the cause: check the log of the component`;
    reporter.warn(entry, key, 'ReportRejected', message);
    reporter.statusChanged(key);
  }

  /** False if the key waits for a slot. */
  async #act(facts: Facts, memory: KeyMemory, step: Exclude<Step, { do: 'rest' }>): Promise<boolean> {
    switch (step.do) {
      case 'start':
        return this.#start(facts, memory, step);
      case 'call':
        this.#call(facts, memory);
        return true;
      case 'store':
        if (await this.#swap(facts, step.next)) this.#deps.reporter.statusChanged(memory.key);
        return true;
      case 'extend': {
        const { run } = memory;
        if ((await this.extend(facts, memory, step)) && run) run.answer = undefined;
        return true;
      }
      case 'apply':
        await this.#apply(facts, memory, step.outputs);
        return true;
      case 'end':
      case 'repeat':
        await this.#end(facts, memory, step);
        return true;
      case 'retire':
        await this.#retire(facts, memory, step);
        return true;
    }
  }

  async #start(facts: Facts, memory: KeyMemory, step: StepOf<'start'>): Promise<boolean> {
    const { limits, tokens, reporter, signal } = this.#deps;
    const { entry, readers, registration, stored, digest } = facts;
    memory.isUnreachable = false;
    if (!limits.admit(memory.text)) {
      const isHeld = stored && memory.isUnreachable && stored.record.heldBy !== 'Unreachable';
      if (isHeld && (await this.#swap(facts, { ...stored.record, heldBy: 'Unreachable' })))
        reporter.statusChanged(memory.key);
      return false;
    }
    const waiting = memory.pending?.triggers ?? [];
    const before = { inputsDigest: stored?.record.inputsDigest, operation: stored?.record.operation ?? 'reconcile' };
    memory.starting = digest;
    memory.inputsChanged = false;
    try {
      const token = await tokens.forRun(entry, registration, signal);
      const next = startedRecord(facts, step, token.id);
      memory.run = {
        seq: next.seq,
        registration,
        start: { entry, readers, triggers: step.triggers, before },
        isInterrupted: false,
        startedAt: facts.monotonicMs,
        isUncalled: true,
        deadlineAt: Number.POSITIVE_INFINITY,
        heartbeatTimeoutMs: undefined,
        answer: undefined,
        applying: undefined,
        refusals: 0,
        token,
        pendingToken: undefined,
        credentials: [token.id],
      };
      if (!(await this.#swap(facts, next))) {
        memory.run = undefined;
        return true;
      }
      memory.keep((left) => !waiting.includes(left));
      memory.unsure = undefined;
      memory.sawMissing = false;
      memory.rejectedReport = undefined;
      return true;
    } catch (error) {
      // It may be stored although the answer was lost.
      if (error instanceof TransportError && !error.notSent) memory.unsure = memory.run;
      memory.run = undefined;
      throw error;
    } finally {
      memory.starting = undefined;
    }
  }

  /** The answer is handled by a later reconcile. */
  #call(facts: Facts, memory: KeyMemory): void {
    const { caller } = this.#deps;
    caller.call(facts, memory).then(
      (current) => {
        this.#settleSlot(current ?? memory);
        if (current) this.#hint(current, 'answer', 0, lanes.manual);
      },
      (error: unknown) => this.#failed(memory, error),
    );
  }

  async #apply(facts: Facts, memory: KeyMemory, outputs: Readonly<Record<string, unknown>>): Promise<void> {
    const { outputWriter, signal } = this.#deps;
    const { stored, entry } = facts;
    const { run } = memory;
    if (!stored || run?.answer?.kind !== 'outcome') return;
    if (stored.record.phase === 'Running' && !outputWriter.isChange(entry, outputs)) {
      run.answer = { ...run.answer, applied: { problem: undefined } };
      return;
    }
    // Also if another process stored that: of two leaders, the one that stored last writes.
    if (run.applying !== stored.resourceVersion) {
      // Another instant makes it a change, which only one of two leaders can store.
      const applying: RunRecord = { ...withoutCredential(stored.record), phase: 'Applying', deadlineMs: facts.nowMs };
      const isStored = await this.#swap(facts, applying);
      if (isStored) run.applying = memory.version;
      return;
    }
    try {
      const problem = await outputWriter.apply(entry.ref, run.registration, outputs, signal);
      run.answer = { ...run.answer, applied: { problem } };
    } catch (error) {
      if (!isRefused(error) || ++run.refusals < maxRefusals) throw error;
      const message = `the API server rejected writing outputs: ${describe(error)}`;
      run.answer = { ...run.answer, applied: { problem: { code: 'NotWritten', message } } };
    }
  }

  async #end(facts: Facts, memory: KeyMemory, step: StepOf<'end'> | StepOf<'repeat'>): Promise<void> {
    const { reporter } = this.#deps;
    const triggers = memory.run?.start?.triggers ?? [];
    if (facts.stored) memory.ending = { before: facts.stored.record, after: step.next };
    if (!(await this.#swap(facts, step.next))) return;
    this.#reportEnding(memory, step.next);
    memory.run = undefined;
    memory.wake = { version: wakeVersion(step.next), ...step.wake };
    if (step.do === 'repeat') {
      // Triggers that arrived during the run wait as well: their calls would fail, too.
      const delayed = [...triggers, ...(memory.pending?.triggers ?? [])];
      const { nowMs, monotonicMs } = facts;
      const atMs = nowMs + step.wake.at - monotonicMs;
      memory.pending = withTriggers(
        undefined,
        delayed.map((trigger) => ({ ...trigger, atMs })),
        { nowMs, monotonicMs },
      );
    } else {
      // Inputs may have changed while the record was stored.
      const now = this.#deps.facts.refresh(memory) ?? facts;
      memory.keep((waiting) => isWanted(waiting, now, step.next));
      if (!memory.pending) memory.oldest = undefined;
    }
    if (step.do === 'end' && step.warning !== undefined)
      reporter.warn(facts.entry, memory.key, alreadySatisfied, step.warning);
    reporter.statusChanged(memory.key);
  }

  async #retire(facts: Facts, memory: KeyMemory, { ended }: StepOf<'retire'>): Promise<void> {
    const { outputWriter, onRetired, signal } = this.#deps;
    const { entry, registration, stored } = facts;
    if (!stored) return;
    const abandoned = isComponentAbandoned(facts.mayRun);
    if (ended) memory.ending = { before: stored.record, after: ended };
    await outputWriter.retire(entry.ref, registration, stored, { abandoned }, signal);
    this.#reportEnding(memory, undefined);
    memory.run = undefined;
    memory.pending = undefined;
    memory.oldest = undefined;
    onRetired(memory.key, entry, { abandoned });
  }

  /** False after a conflict: decide again. Throws if the record is gone: the watch reports it soon. */
  async #swap({ stored, memory }: Facts, next: RunRecord): Promise<boolean> {
    const { runs, reporter, signal } = this.#deps;
    try {
      const swap = await runs.swap(next, stored, signal);
      if (swap.kind === 'stored') {
        memory.version = swap.stored.resourceVersion;
        return true;
      }
      reporter.conflict();
      if (stored && !swap.stored) throw new ApiError(409, 'Conflict', 'the run record was removed meanwhile');
      return false;
    } catch (error) {
      if (!isRefused(error)) throw error;
      const message = `the API server rejected the run record: ${describe(error)}; the server retries`;
      throw new Refused({ state: 'Failed', reason: 'NotStored', message });
    }
  }

  /** Once the run has ended, also if the answer of that write was lost. */
  #reportEnding(memory: KeyMemory, record: RunRecord | undefined): void {
    const { ending } = memory;
    if (!ending || (record?.seq === ending.after.seq && record.phase !== 'Idle')) return;
    memory.ending = undefined;
    const { lastOutcome } = ending.after;
    if (
      !record ||
      (record.lastOutcome?.seq === lastOutcome?.seq && record.lastOutcome?.outcome === lastOutcome?.outcome)
    )
      this.#deps.reporter.recordStored(memory.key, ending.before, ending.after);
  }

  #noteDue(memory: KeyMemory, step: Step): void {
    if (step.do === 'rest') {
      memory.dueAt = memory.run ? undefined : step.at;
      memory.lane = step.lane ?? lanes.time;
    } else if (step.do === 'start') {
      const now = this.#deps.clock.monotonic();
      memory.dueAt = Math.min(memory.dueAt ?? now, now);
      memory.lane = step.lane;
    } else {
      memory.dueAt = undefined;
    }
  }

  #failed(memory: KeyMemory, error: unknown): void {
    const { reporter, clock, random } = this.#deps;
    const delayMs = backoffMs({ ...backoff, attempt: memory.failures, random });
    memory.failures += 1;
    memory.retryAt = clock.monotonic() + delayMs;
    if (error instanceof Refused) this.#setProblem(memory, error.problem);
    else if (error instanceof CodedError)
      this.#setProblem(memory, { state: 'Retrying', reason: error.code, message: error.message });
    else if (!(error instanceof ApiError || error instanceof TransportError))
      this.#setProblem(memory, reporter.keyFailed(memory.key, error));
  }

  #setProblem(memory: KeyMemory, problem: KeyMemory['problem']): void {
    if (memory.problem === undefined && problem === undefined) return;
    memory.problem = problem;
    this.#deps.reporter.statusChanged(memory.key);
  }

  /** A run needs a slot until it has ended and its call is answered. */
  #settleSlot(memory: KeyMemory): void {
    const { limits, signal } = this.#deps;
    // The slots are those of the next leadership.
    if (signal.aborted) return;
    const isActive = memory.isCalling || ((memory.run ?? memory.unsure) !== undefined && !memory.isDropped);
    if (isActive) limits.acquire(memory.key);
    else limits.release(memory.text);
  }

  #hint(memory: KeyMemory, reason: string, delayMs: number, lane: Lane = memory.lane): void {
    this.#deps.queue.hint(memory.text, reason, { lane, delayMs: Math.max(0, delayMs) });
  }
}

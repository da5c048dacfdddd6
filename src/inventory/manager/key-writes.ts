import { CodedError, describe } from '../../kit/errors.ts';
import { type Effect, type KeyStatus, plainStatus } from '../core/key-state.ts';
import type { StoredRecord } from '../core/run-record.ts';
import { isComponentAbandoned } from '../core/steps/drain.ts';
import { lanes, triggerReasons } from '../core/triggers.ts';
import type { ComponentSnapshot, EventFactory } from './entry-snapshot.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import { CurrentRun, type KeyMemory } from './key-memory.ts';
import { isRetryable, storeRecord } from './retried-writes.ts';

const writeKinds = ['start', 'store', 'apply', 'retire'] as const satisfies readonly Effect['kind'][];
/** Effects that complete before the next one. A rejected `store` skips later ones and the call. */
type Write = Extract<Effect, { kind: (typeof writeKinds)[number] }>;
type WriteOf<Kind extends Write['kind']> = Extract<Write, { kind: Kind }>;

interface WriteResult {
  /** To handle after the effects. */
  readonly event?: EventFactory;
  /** Skip the later writes and the call. */
  readonly stops?: true;
  readonly retry?: Retry;
}

/** A rejected write to repeat after `delayMs`, between other events. */
export interface Retry {
  readonly delayMs: number;
  readonly attempt: () => Promise<WriteResult>;
}

const writes: ReadonlySet<Effect['kind']> = new Set(writeKinds);
export const isWrite = (effect: Effect): effect is Write => writes.has(effect.kind);

/**
 * Rejects when leadership ends, or with an error that is not retryable. Another failed start
 * becomes the event `conflict`; of `apply`, `applied` has the problem; of `store` and `retire`, the
 * status.
 */
export function write(
  deps: KeyLoopDeps,
  memory: KeyMemory,
  effect: Write,
  snapshot: ComponentSnapshot,
): Promise<WriteResult> {
  switch (effect.kind) {
    case 'start':
      return start(deps, memory, effect, snapshot);
    case 'store':
      return store(deps, memory, effect);
    case 'apply':
      return apply(deps, memory, effect, snapshot);
    case 'retire':
      return retire(deps, memory, effect, snapshot);
  }
}

async function start(
  deps: KeyLoopDeps,
  memory: KeyMemory,
  { next, base }: WriteOf<'start'>,
  snapshot: ComponentSnapshot,
): Promise<WriteResult> {
  const { failures, signal } = deps;
  const { entry, readers, registration } = snapshot;
  try {
    const token = await deps.tokens.forRun(entry, registration, signal);
    const swap = await deps.runs.swap({ ...next, credentialId: token.id }, base, signal);
    failures.forget(memory);
    memory.unstored = false;
    memory.startProblem = undefined;
    if (swap.kind === 'conflict') return conflictResult(deps, swap.stored);
    const { stored } = swap;
    memory.run = new CurrentRun(stored.record, registration, { snapshot: { entry, readers }, token });
    return { event: ({ inputs }) => ({ kind: 'started', stored, inputs }) };
  } catch (error) {
    signal.throwIfAborted();
    if (!isRetryable(error)) throw error;
    failures.failed(memory);
    deps.reporter.startFailed(memory.key, describe(error));
    if (error instanceof CodedError) {
      memory.startProblem = { reason: error.code, message: error.message };
      deps.reporter.statusChanged(memory.key);
    }
    return conflictWith(base);
  }
}

async function store(deps: KeyLoopDeps, memory: KeyMemory, effect: WriteOf<'store'>): Promise<WriteResult> {
  const { base, next } = effect;
  const swap = await storeRecord(deps, next, memory.latestStored(base), deps.signal);
  if (swap.kind === 'rejected') return storeLater(deps, memory, effect, swap.message);
  deps.rejections.forget(memory);
  memory.unstored = false;
  if (swap.kind === 'conflict') {
    // Its later effects are skipped.
    deps.enqueue(memory.keyText, triggerReasons.requeue, lanes.input, 0);
    return conflictResult(deps, swap.stored);
  }
  memory.recordWrite(base, next, swap.stored);
  deps.reporter.recordStored(memory.key, base.record, swap.stored.record);
  return {};
}

/** Shows a rejected write in the status, and retries until it succeeds or is outdated. */
function storeLater(deps: KeyLoopDeps, memory: KeyMemory, effect: WriteOf<'store'>, message: string): WriteResult {
  const { rejections } = deps;
  const { status } = memory.state;
  memory.unstored = true;
  const notStored = setStatus(
    deps,
    memory,
    plainStatus('Failed', 'NotStored', `the API server rejected the run record: ${message}; the server retries`),
  );
  const attempt = async (): Promise<WriteResult> => {
    const { phase, stored } = memory.state;
    if (memory.dropped || phase === 'gone' || stored?.record !== effect.next) return {};
    if (memory.state.status === notStored) memory.setStatus(status);
    const written = await store(deps, memory, effect);
    if (written.stops) return written;
    deps.reporter.statusChanged(memory.key);
    // Its later effects were skipped.
    deps.enqueue(memory.keyText, triggerReasons.requeue, lanes.input, 0);
    return written;
  };
  rejections.failed(memory);
  return { stops: true, retry: { delayMs: rejections.delayMs(memory), attempt } };
}

async function apply(
  deps: KeyLoopDeps,
  memory: KeyMemory,
  { outputs }: WriteOf<'apply'>,
  snapshot: ComponentSnapshot,
): Promise<WriteResult> {
  const { registration } = memory.run ?? snapshot;
  const problem = await deps.outputWriter.apply(snapshot.entry.ref, registration, outputs, deps.signal);
  return { event: ({ inputs }) => ({ kind: 'applied', problem, inputs }) };
}

/** Shows a failure in the status and retries. */
async function retire(
  deps: KeyLoopDeps,
  memory: KeyMemory,
  { base, ended }: WriteOf<'retire'>,
  snapshot: ComponentSnapshot,
): Promise<WriteResult> {
  const { failures, reporter } = deps;
  const { key } = memory;
  const { entry, registration, inputs } = snapshot;
  if (ended) reporter.recordStored(key, base.record, ended);
  const abandoned = isComponentAbandoned(inputs);
  const stored = memory.latestStored(base);
  const problem = await deps.outputWriter.retire(entry.ref, registration, stored, { abandoned }, deps.signal);
  memory.unstored = problem !== undefined;
  if (!problem) {
    failures.forget(memory);
    // An earlier attempt may have failed and replaced the status.
    if (abandoned && memory.state.status?.reason !== 'Abandoned') {
      memory.setStatus(plainStatus('NotApplicable', 'Abandoned'));
    }
    deps.retired(key, entry, { abandoned });
    return {};
  }
  setStatus(deps, memory, plainStatus('Deleting', problem.code, problem.message));
  failures.failed(memory);
  deps.enqueue(memory.keyText, triggerReasons.requeue, lanes.time, failures.delayMs(memory));
  return {};
}

function setStatus(deps: KeyLoopDeps, memory: KeyMemory, status: KeyStatus): KeyStatus {
  memory.setStatus(status);
  deps.reporter.statusChanged(memory.key);
  return status;
}

function conflictResult({ reporter }: KeyLoopDeps, stored: StoredRecord | undefined): WriteResult {
  reporter.conflict();
  return conflictWith(stored);
}

const conflictWith = (stored: StoredRecord | undefined): WriteResult => ({
  event: ({ inputs }) => ({ kind: 'conflict', stored, inputs }),
  stops: true,
});

import { describe } from '../../kit/errors.ts';
import type { StoredRecord } from '../core/run-record.ts';
import { type Effect, type KeyStatus, plainStatus } from '../core/step.ts';
import { lanes, triggerReasons } from '../core/triggers.ts';
import type { ComponentSnapshot, EventOf } from './entry-snapshot.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import { CurrentRun, type KeyMemory } from './key-memory.ts';
import { mayPass } from './persist.ts';

const writeKinds = ['start', 'store', 'apply', 'retire'] as const satisfies readonly Effect['kind'][];
/** The effects that are waited for. */
type Write = Extract<Effect, { kind: (typeof writeKinds)[number] }>;
type Of<Kind extends Write['kind']> = Extract<Write, { kind: Kind }>;

/** What a write came to. */
interface Written {
  /** What `step` has to know. */
  readonly event?: EventOf;
  /** Of the effects that were to follow, none happens that builds on it. */
  readonly stops?: true;
  readonly again?: Again;
}

/** What was refused is tried again after `delayMs`, between other events. */
export interface Again {
  readonly delayMs: number;
  readonly attempt: () => Promise<Written>;
}

const writes: ReadonlySet<Effect['kind']> = new Set(writeKinds);
export const isWrite = (effect: Effect): effect is Write => writes.has(effect.kind);

export function write(work: KeyLoopDeps, memory: KeyMemory, effect: Write, found: ComponentSnapshot): Promise<Written> {
  switch (effect.kind) {
    case 'start':
      return start(work, memory, effect, found);
    case 'store':
      return store(work, memory, effect);
    case 'apply':
      return apply(work, memory, effect, found);
    case 'retire':
      return retire(work, memory, effect, found);
  }
}

async function start(
  work: KeyLoopDeps,
  memory: KeyMemory,
  { next, base }: Of<'start'>,
  found: ComponentSnapshot,
): Promise<Written> {
  const { failures, signal } = work;
  const { entry, present, registration } = found;
  try {
    const token = await work.tokens.forRun(entry, registration, signal);
    const swap = await work.runs.swap({ ...next, credentialId: token.id }, base, signal);
    failures.forget(memory);
    memory.unstored = false;
    if (swap.kind === 'conflict') return beaten(work, swap.stored);
    const { stored } = swap;
    memory.run = new CurrentRun(stored.record, registration, { sight: { entry, present }, token });
    return { event: ({ inputs }) => ({ kind: 'started', stored, inputs }) };
  } catch (error) {
    signal.throwIfAborted();
    if (!mayPass(error)) throw error;
    failures.failed(memory);
    work.reporter.notStarted(memory.key, describe(error));
    return notDone(base);
  }
}

async function store(work: KeyLoopDeps, memory: KeyMemory, effect: Of<'store'>): Promise<Written> {
  const { base, next } = effect;
  const swap = await work.records.store(next, memory.latest(base), work.signal);
  if (swap.kind === 'refused') return storeLater(work, memory, effect, swap.message);
  work.refusals.forget(memory);
  memory.unstored = false;
  if (swap.kind === 'conflict') {
    // What was to follow is found out anew.
    work.enqueue(memory.text, triggerReasons.requeue, lanes.input, 0);
    return beaten(work, swap.stored);
  }
  memory.wrote(base, next, swap.stored);
  work.reporter.stored(memory.key, base.record, swap.stored.record);
  return {};
}

/** What is refused shows, and is tried again, unless another event has made it pointless. */
function storeLater(work: KeyLoopDeps, memory: KeyMemory, effect: Of<'store'>, message: string): Written {
  const { refusals } = work;
  const { status: row } = memory.state;
  memory.unstored = true;
  const shown = show(work, memory, plainStatus('Failed', 'NotStored', message));
  const attempt = async (): Promise<Written> => {
    const { phase, stored } = memory.state;
    if (memory.dropped || phase === 'gone' || stored?.record !== effect.next) return {};
    if (memory.state.status === shown) memory.show(row);
    const written = await store(work, memory, effect);
    if (written.stops) return written;
    work.reporter.statusChanged(memory.key);
    // What was to follow from it.
    work.enqueue(memory.text, triggerReasons.requeue, lanes.input, 0);
    return written;
  };
  refusals.failed(memory);
  return { stops: true, again: { delayMs: refusals.delayMs(memory), attempt } };
}

async function apply(
  work: KeyLoopDeps,
  memory: KeyMemory,
  { outputs }: Of<'apply'>,
  found: ComponentSnapshot,
): Promise<Written> {
  const { registration } = memory.run ?? found;
  const refusal = await work.outputs.apply(found.entry.ref, registration, outputs, work.signal);
  return { event: ({ inputs }) => ({ kind: 'applied', refusal, inputs }) };
}

/** What cannot be taken out stays with its record, shows, and is tried again. */
async function retire(
  work: KeyLoopDeps,
  memory: KeyMemory,
  { base, ended }: Of<'retire'>,
  found: ComponentSnapshot,
): Promise<Written> {
  const { failures, reporter: teller } = work;
  const { key } = memory;
  const { entry, registration, inputs } = found;
  if (ended) teller.stored(key, base.record, ended);
  const refusal = await work.outputs.retire(entry.ref, registration, memory.latest(base), work.signal);
  memory.unstored = refusal !== undefined;
  if (!refusal) {
    failures.forget(memory);
    work.retired(key, entry, inputs.mayRun);
    return {};
  }
  show(work, memory, plainStatus('Deleting', refusal.code, refusal.message));
  failures.failed(memory);
  work.enqueue(memory.text, triggerReasons.requeue, lanes.time, failures.delayMs(memory));
  return {};
}

/** In place of what its last run came to. */
function show(work: KeyLoopDeps, memory: KeyMemory, row: KeyStatus): KeyStatus {
  memory.show(row);
  work.reporter.statusChanged(memory.key);
  return row;
}

/** Somebody else has written the record first. */
function beaten({ reporter: teller }: KeyLoopDeps, stored: StoredRecord | undefined): Written {
  teller.conflict();
  return notDone(stored);
}

/** The record is as it is said here, and nothing of what was to follow happens. */
const notDone = (stored: StoredRecord | undefined): Written => ({
  event: ({ inputs }) => ({ kind: 'conflict', stored, inputs }),
  stops: true,
});

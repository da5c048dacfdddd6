import { describe } from '../../kit/errors.ts';
import type { StoredRecord } from '../core/run-record.ts';
import { type Effect, plainRow, type Row } from '../core/step.ts';
import { lanes, triggerReasons } from '../core/triggers.ts';
import { CurrentRun, type KeyMemory } from './key-memory.ts';
import type { EventOf, Found } from './look.ts';
import { mayPass } from './persist.ts';
import type { Work } from './work.ts';

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

export function write(work: Work, memory: KeyMemory, effect: Write, found: Found): Promise<Written> {
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

async function start(work: Work, memory: KeyMemory, { next, base }: Of<'start'>, found: Found): Promise<Written> {
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
    work.teller.notStarted(memory.key, describe(error));
    return notDone(base);
  }
}

async function store(work: Work, memory: KeyMemory, effect: Of<'store'>): Promise<Written> {
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
  work.teller.stored(memory.key, base.record, swap.stored.record);
  return {};
}

/** What is refused shows, and is tried again, unless another event has made it pointless. */
function storeLater(work: Work, memory: KeyMemory, effect: Of<'store'>, message: string): Written {
  const { refusals } = work;
  const { row } = memory.state;
  memory.unstored = true;
  const shown = show(work, memory, plainRow('Failed', 'NotStored', message));
  const attempt = async (): Promise<Written> => {
    const { phase, stored } = memory.state;
    if (memory.dropped || phase === 'gone' || stored?.record !== effect.next) return {};
    if (memory.state.row === shown) memory.show(row);
    const written = await store(work, memory, effect);
    if (written.stops) return written;
    work.teller.row(memory.key);
    // What was to follow from it.
    work.enqueue(memory.text, triggerReasons.requeue, lanes.input, 0);
    return written;
  };
  refusals.failed(memory);
  return { stops: true, again: { delayMs: refusals.delayMs(memory), attempt } };
}

async function apply(work: Work, memory: KeyMemory, { outputs }: Of<'apply'>, found: Found): Promise<Written> {
  const { registration } = memory.run ?? found;
  const refusal = await work.outputs.apply(found.entry.ref, registration, outputs, work.signal);
  return { event: ({ inputs }) => ({ kind: 'applied', refusal, inputs }) };
}

/** What cannot be taken out stays with its record, shows, and is tried again. */
async function retire(work: Work, memory: KeyMemory, { base, ended }: Of<'retire'>, found: Found): Promise<Written> {
  const { failures, teller } = work;
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
  show(work, memory, plainRow('Deleting', refusal.code, refusal.message));
  failures.failed(memory);
  work.enqueue(memory.text, triggerReasons.requeue, lanes.time, failures.delayMs(memory));
  return {};
}

/** In place of what its last run came to. */
function show(work: Work, memory: KeyMemory, row: Row): Row {
  memory.show(row);
  work.teller.row(memory.key);
  return row;
}

/** Somebody else has written the record first. */
function beaten({ teller }: Work, stored: StoredRecord | undefined): Written {
  teller.conflict();
  return notDone(stored);
}

/** The record is as it is said here, and nothing of what was to follow happens. */
const notDone = (stored: StoredRecord | undefined): Written => ({
  event: ({ inputs }) => ({ kind: 'conflict', stored, inputs }),
  stops: true,
});

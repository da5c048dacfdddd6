import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import { clusterInventories } from '../../../src/api/inventory/names.ts';
import { apiVersionOf } from '../../../src/api/object.ts';
import type { Facts, NotRunReason, Step } from '../../../src/inventory/core/facts.ts';
import { type ActiveRun, type Answer, Memory } from '../../../src/inventory/core/memory.ts';
import type { LastOutcome, RunRecord } from '../../../src/inventory/core/run-record.ts';
import { wakeReason } from '../../../src/inventory/core/timing.ts';
import {
  type Lane,
  lanes,
  type PendingTriggers,
  reasonText,
  type Trigger,
  type TriggerReason,
  trigger,
  withTriggers,
} from '../../../src/inventory/core/triggers.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { entryOf } from './entry-of.ts';
import { registrationOf } from './registrations.ts';
import { runRecordOf } from './run-record.ts';

export const nowMs = Date.UTC(2026, 10, 21, 9);
/** Monotonic milliseconds. */
export const now = 1_000_000;
export const minute = 60_000;
export const hour = 60 * minute;

/** What differs from component network of an entry, which is idle after Done with digest `a`. */
export interface Given extends Partial<Pick<Facts, 'digest' | 'readers' | 'isUnwatched'>> {
  /** Why it may not run, or `delete`. */
  readonly may?: 'reconcile' | 'delete' | NotRunReason;
  /** Null: none. */
  readonly record?: Partial<RunRecord> | null;
  /** Of the last run that ended; null if none has. A run has none before it by default. */
  readonly last?: Partial<LastOutcome> | null;
  /** An active run, whose call has ended. */
  readonly run?: Partial<ActiveRun>;
  /** Of the run. */
  readonly answer?: Answer;
  /** The same. */
  readonly outcome?: Outcome;
  /** Where the start of the run differs from the present. */
  readonly start?: Partial<NonNullable<ActiveRun['start']>>;
  /** Reasons of triggers, in `waitsMs`, by default now. */
  readonly waits?: string;
  readonly waitsMs?: number;
  /** Milliseconds until the next run, by default an hour. */
  readonly wake?: number;
  readonly memory?: Partial<Memory>;
  readonly entry?: Partial<Entry>;
  readonly registration?: Partial<Registration>;
  readonly random?: number;
}

export function factsOf(given: Given = {}): Facts {
  const { may = 'reconcile', outcome, random = 0.5, waits, waitsMs = 0, wake = hour } = given;
  const registration = registrationOf('network', given.registration);
  const entry = { ...plainEntry, deleting: may === 'delete', ...given.entry };
  const answer = outcome ? ({ kind: 'outcome', outcome } as const) : given.answer;
  const run = answer ? { answer, ...given.run } : given.run;
  const record = given.record === null ? undefined : recordOf({ ...given, ...(run && { run }) }, entry);
  const memory = new Memory();
  memory.version = '1';
  if (record && run) memory.run = { ...activeRun(record, registration, entry, given.start), ...run };
  else if (record) memory.wake = { version: '1', at: now + wake, reason: wakeReason(record.lastOutcome?.outcome) };
  if (waits !== undefined) memory.pending = pendingOf(waits, waitsMs);
  Object.assign(memory, given.memory);
  return {
    entry,
    registration,
    stored: record && { record, resourceVersion: '1' },
    digest: given.digest ?? 'a',
    mayRun: may === 'reconcile' || may === 'delete' ? { may } : { may: 'no', why: may },
    readers: given.readers ?? [],
    isUnwatched: given.isUnwatched ?? false,
    memory,
    nowMs,
    monotonicMs: now,
    random: () => random,
  };
}

const plainEntry = entryOf({
  apiVersion: apiVersionOf(clusterInventories),
  kind: clusterInventories.kind,
  metadata: { namespace: 'inv', name: 'c1', uid: 'u1' },
  spec: { mode: 'managed', suspend: false, cluster: { region: 'west' }, components: {} },
});

function recordOf({ run, last, record }: Given, entry: Entry): RunRecord {
  const lastOutcome = last === null || (run && !last) ? undefined : lastOf(last);
  const active: Partial<RunRecord> = {
    seq: lastOutcome ? 2 : 1,
    credentialId: 'JTI=1',
    startedAtMs: nowMs - 1000,
    deadlineMs: nowMs + 9000,
  };
  const idle: Partial<RunRecord> = { phase: 'Idle', startedAtMs: nowMs - 2000, nextAtMs: nowMs + hour };
  return runRecordOf(entry.ref, { inputsDigest: 'a', lastOutcome, ...(run ? active : idle), ...record });
}

const lastOf = (rest: Partial<LastOutcome> = {}): LastOutcome => ({
  seq: 1,
  outcome: 'Done',
  reason: undefined,
  message: undefined,
  missing: [],
  endedAtMs: nowMs - 1000,
  sinceMs: nowMs - 1000,
  durationMs: 1000,
  ...rest,
});

const activeRun = ({ seq }: RunRecord, registration: Registration, entry: Entry, start: Given['start']): ActiveRun => ({
  seq,
  registration,
  start: {
    entry,
    readers: [],
    triggers: [trigger('Created')],
    before: { inputsDigest: undefined, operation: 'reconcile' },
    ...start,
  },
  isInterrupted: false,
  startedAt: now - 1000,
  isUncalled: false,
  deadlineAt: now + 9000,
  heartbeatTimeoutMs: undefined,
  answer: undefined,
  applying: undefined,
  refusals: 0,
  token: undefined,
  pendingToken: undefined,
  credentials: ['JTI=1'],
});

export const pendingOf = (waits: string, inMs: number): PendingTriggers | undefined =>
  withTriggers(undefined, triggersOf(waits, { atMs: nowMs + inMs }), { nowMs, monotonicMs: now });

/** Given as `Reason Reason:detail`. */
export const triggersOf = (texts: string, rest: Partial<Trigger> = {}): readonly Trigger[] =>
  texts.split(' ').map((text) => {
    const [reason, detail] = text.split(':');
    return trigger(reason as TriggerReason, { detail, ...rest });
  });

/** The step in words: what does not follow from the record before it. Times are from now. */
export function stepText(step: Step, before: RunRecord | undefined): string {
  switch (step.do) {
    case 'rest':
      return step.at === undefined || step.at === Number.POSITIVE_INFINITY
        ? 'rest'
        : `rest ${timeText(step.at - now)}${step.lane === undefined ? '' : `, ${laneText(step.lane)}`}`;
    case 'start': {
      const operation = step.operation === 'delete' ? 'delete ' : '';
      return `start ${operation}for ${step.triggers.map(reasonText).join(' ')}, ${laneText(step.lane)}`;
    }
    case 'call':
      return 'call';
    case 'store':
      return `store ${changes(step.next, before)}`;
    case 'extend':
      return `extend to ${timeText(step.deadlineAt - now)}, ${step.next ? changes(step.next, before) : 'unstored'}`;
    case 'apply':
      return `apply ${JSON.stringify(step.outputs)}`;
    case 'retire':
      return step.ended ? `retire after ${outcomeText(step.ended)}` : 'retire';
    case 'end':
    case 'repeat': {
      const { next, wake } = step;
      const { nextAtMs = 0, attempt, inputsDigest = 'none', operation, heldBy } = next;
      const wakeMs = wake.at - now;
      return [
        `${step.do} ${next.lastOutcome?.seq === next.seq ? outcomeText(next) : 'undone'}`,
        `${timeText(nextAtMs - nowMs)} ${wake.reason}`,
        ...(wakeMs === nextAtMs - nowMs ? [] : [`wake ${timeText(wakeMs)}`]),
        ...(attempt === 0 ? [] : [`attempt ${attempt}`]),
        ...(operation === before?.operation ? [] : [operation]),
        ...(inputsDigest === before?.inputsDigest ? [] : [`digest ${inputsDigest}`]),
        ...(heldBy === undefined ? [] : [heldBy]),
      ].join(', ');
    }
  }
}

function timeText(ms: number): string {
  if (ms !== 0 && ms % minute === 0) return `${ms / minute}min`;
  return ms !== 0 && ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

const laneText = (lane: Lane): string => Object.entries(lanes).find(([, number]) => number === lane)?.[0] ?? '';

const outcomeText = ({ lastOutcome }: RunRecord): string =>
  `${lastOutcome?.outcome}${lastOutcome?.reason ? `(${lastOutcome.reason})` : ''}`;

/** The changed fields of the record. */
const changes = (next: RunRecord, before: RunRecord | undefined): string =>
  Object.entries(next)
    .filter(([field, value]) => before?.[field as keyof RunRecord] !== value)
    .map(([field, value]) => {
      if (typeof value === 'number') return `${field} ${timeText(value - nowMs)}`;
      return `${field} ${typeof value === 'object' ? value.id : (value ?? 'none')}`;
    })
    .join(', ');

import { alreadySatisfied } from '../../api/inventory/describe-state.ts';
import { forceAnnotation } from '../../api/inventory/names.ts';
import { jittered } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { allHold, digestInputs, type EntryReaders } from '../core/digest.ts';
import { type Facts, isApplicable, mayRun } from '../core/facts.ts';
import { wakeVersion } from '../core/memory.ts';
import { isOutdated } from '../core/plan.ts';
import type { RunRecord } from '../core/run-record.ts';
import { clockSlackMs, graceMs, maxDelayMs, unstoredShare, unwatchedRunsMs, wakeReason } from '../core/timing.ts';
import { type Entry, isAbandoned } from '../entry.ts';
import type { InventoryStore, RemoteWatcher, RunStore } from '../ports.ts';
import { type Registration, standInRegistration } from '../registration.ts';
import type { KeyMemory } from './memories.ts';
import type { RegistrationLister } from './registrations.ts';

interface FactsReaderDeps {
  readonly entries: Pick<InventoryStore, 'find'>;
  readonly runs: Pick<RunStore, 'find'>;
  readonly registrations: RegistrationLister;
  readonly remote: Pick<RemoteWatcher, 'problem'>;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Another process wrote a record, so the status of its entry may have changed. */
  readonly onForeignWrite: (entryUid: string) => void;
}

/** Reads from the watches; run records also from writes of this process. */
export class FactsReader {
  readonly #deps: FactsReaderDeps;

  constructor(deps: FactsReaderDeps) {
    this.#deps = deps;
  }

  /** Brings the memory up to date. Undefined while the entry or the registration is unknown. */
  refresh(memory: KeyMemory, entry = this.#deps.entries.find(memory.key.entryUid)): Facts | undefined {
    const { runs, registrations, remote, clock, random } = this.#deps;
    const { component } = memory.key;
    if (memory.isDropped || !entry) return undefined;
    memory.registration = registrations.get(component) ?? memory.registration;
    // For a component whose registration this process never read.
    const standIn = isAbandoned(entry, component) ? standInRegistration(component) : undefined;
    const registration = memory.registration ?? standIn;
    if (!registration) return undefined;
    const stored = runs.find(memory.key);
    const facts: Facts = {
      entry,
      get readers() {
        return readersOf(entry, registrations, runs);
      },
      registration,
      stored,
      digest: digestOf(memory, entry, registration),
      mayRun: mayRun(entry, registration, {
        refused: registrations.problem(component) !== undefined,
        recorded: stored !== undefined,
      }),
      isUnwatched: remote.problem(entry.ref.uid) !== undefined && watchesManaged(registration),
      memory,
      nowMs: clock.now(),
      monotonicMs: clock.monotonic(),
      random,
    };
    const { version } = memory;
    observe(memory, facts);
    if (memory.version !== version) this.#deps.onForeignWrite(entry.ref.uid);
    return facts;
  }
}

/** Facts are read many times a run, so each version of the entry is digested once. */
function digestOf(memory: KeyMemory, entry: Entry, registration: Registration): string {
  const { resourceVersion: version, annotations } = entry;
  if (memory.digested?.version !== version || memory.digested.registration !== registration) {
    const digest = digestInputs(entry.content, registration, annotations[forceAnnotation(registration.name)]);
    memory.digested = { version, registration, digest };
  }
  return memory.digested.digest;
}

/** Components that read the entry, for missing inputs that want `noReaders`. */
function readersOf(entry: Entry, registrations: RegistrationLister, runs: Pick<RunStore, 'find'>): EntryReaders {
  const { uid: entryUid } = entry.ref;
  return [...registrations.all()].filter((registration) =>
    entry.deleting
      ? runs.find({ entryUid, component: registration.name }) !== undefined
      : isApplicable(entry, registration),
  );
}

const watchesManaged = ({ remoteWatches }: Registration): boolean =>
  remoteWatches.some(({ cluster }) => cluster === 'managed');

/** Brings the memory up to date with a record that this or another process wrote. */
function observe(memory: KeyMemory, facts: Facts): void {
  const { stored, digest, nowMs, monotonicMs, registration } = facts;
  const record = stored?.record;
  const isActive = record !== undefined && record.phase !== 'Idle';
  if (memory.starting === undefined) {
    if (!isActive) memory.run = undefined;
    else if (memory.run?.seq !== record.seq) adopt(memory, facts, record);
  }
  memory.version = stored?.resourceVersion ?? memory.version;
  const started = memory.starting ?? (isActive ? record.inputsDigest : undefined);
  if (started !== undefined && started !== digest) memory.inputsChanged = true;
  if (!facts.isUnwatched || registration.intervalMs <= unwatchedRunsMs) memory.unwatched = undefined;
  // Clusters often fail together; jitter spreads the runs.
  else memory.unwatched ??= { since: monotonicMs, periodMs: jittered(unwatchedRunsMs, 0.1, facts.random) };
  if (isActive || memory.starting !== undefined) return;
  if (isOutdated(facts)) {
    memory.pending = undefined;
    memory.oldest = undefined;
  }
  if (!record) return;
  if (memory.wake?.version !== wakeVersion(record)) {
    // Another clock may have set the stored time, so cap the delay.
    const delayMs = Math.min(Math.max(0, (record.nextAtMs ?? nowMs) - nowMs), maxDelayMs(record, registration));
    const reason = wakeReason(record.lastOutcome?.outcome);
    memory.wake = { version: wakeVersion(record), at: monotonicMs + delayMs, reason };
  }
  if (record.lastOutcome?.reason === alreadySatisfied && !memory.sawMissing)
    memory.sawMissing = !allHold(record.lastOutcome.missing, facts.entry.content, facts.readers);
}

/**
 * Another process started the run. A new leader ends one whose answer or outputs are lost; others
 * may report until their deadline.
 */
function adopt(memory: KeyMemory, facts: Facts, record: RunRecord): void {
  const { unsure } = memory;
  memory.unsure = undefined;
  if (unsure?.token?.id !== undefined && unsure.token.id === record.credentialId) {
    memory.run = unsure;
    return;
  }
  const { registration, nowMs, monotonicMs } = facts;
  const elapsedMs = Math.max(0, nowMs - (record.startedAtMs ?? nowMs) - clockSlackMs);
  // This process may have started a later run.
  const startedAt = Math.max(memory.lastStart ?? Number.NEGATIVE_INFINITY, monotonicMs - elapsedMs);
  const longestMs = Math.max(graceMs, registration.heartbeatTimeoutMs, registration.timeoutMs);
  const leftMs = (record.deadlineMs ?? nowMs) - nowMs + longestMs * unstoredShare;
  memory.lastStart = startedAt;
  memory.inputsChanged = false;
  memory.rejectedReport = undefined;
  memory.run = {
    seq: record.seq,
    registration,
    start: undefined,
    isInterrupted: memory.version === undefined && !(record.asynchronous && record.phase === 'Running'),
    startedAt,
    isUncalled: false,
    deadlineAt: monotonicMs + Math.min(Math.max(graceMs, leftMs), longestMs),
    heartbeatTimeoutMs: undefined,
    answer: undefined,
    applying: undefined,
    refusals: 0,
    token: undefined,
    pendingToken: undefined,
    credentials: [record.credentialId, record.previousCredential?.id].filter((id) => id !== undefined),
  };
}

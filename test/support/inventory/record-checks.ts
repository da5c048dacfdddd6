import { isDeepStrictEqual } from 'node:util';
import { abandonAnnotation, forceAnnotation, maxEntryBytes } from '../../../src/api/inventory/names.ts';
import type { OutcomeName } from '../../../src/api/inventory/reconcile-run.ts';
import { digestInputs } from '../../../src/inventory/core/digest.ts';
import { type LastOutcome, type RunRecord, wasNotAccepted } from '../../../src/inventory/core/run-record.ts';
import { parseKey } from '../../../src/inventory/key.ts';
import type { CheckedWorld, SimManager } from './simulation.ts';
import { assertInvariant } from './violation.ts';

/** Maximum clock difference between the writer and the reader of a due time. */
const clocksApartMs = 300_000;
/** Grace of an adopted run. */
const graceMs = 10_000;
/** Allowance of a call beyond its timeout. */
const callSlackMs = 5000;
/** Delay besides the backoff: the probe of a breaker, other runs in its slots, lost requests. */
const slackMs = 60_000;
/** The longest delay after a call that was not accepted: the largest Retry-After of the simulated components. */
const maxRefusedMs = 3000;

/** Observations of one run. */
interface Run {
  /** Outcomes of the component, and the time of the first. */
  readonly said: OutcomeName[];
  saidAt: number | undefined;
  /** The invariant that applies because a request of the component was rejected. */
  refused: string | undefined;
  /** The manager that called the component, and the time. */
  called: { readonly by: SimManager; readonly at: number } | undefined;
  /** Time at which the run was first stored as asynchronous. */
  asyncAt: number;
  /** Deadline that the leader granted. */
  granted: { readonly by: SimManager; readonly until: number } | undefined;
}

/** End of the last run of a key. */
interface End {
  readonly by: SimManager;
  /** The run had not ended before. */
  readonly at: number;
  readonly outcome: OutcomeName;
  readonly delayMs: number;
}

/** Checks the invariants of each write of a record at the API server. */
export class RecordChecks {
  readonly #world: CheckedWorld;
  readonly #runs = new Map<string, Run>();
  readonly #ends = new Map<string, End>();
  readonly #started = new Set<string>();
  /** Last writer of each record, by key. */
  readonly #writers = new Map<string, SimManager | undefined>();
  /** The manager that stored the outcome of the last run before its outputs, by key. */
  readonly #applying = new Map<string, SimManager | undefined>();
  /** Each Retry delay as a share of the longest one; must be uniform. */
  readonly backoffs = { sum: 0, count: 0 };

  constructor(world: CheckedWorld) {
    this.#world = world;
  }

  isStarted(run: string): boolean {
    return this.#started.has(run);
  }

  /**
   * Whether this manager stored the outcome of the last run, and has not ended it since. Another manager may have ended it meanwhile: the
   * record and the entry are two objects, so one write cannot exclude the other.
   */
  mayWriteOutputs(key: string, by: SimManager): boolean {
    return this.#applying.get(key) === by;
  }

  answered(run: string, outcome: OutcomeName): void {
    const known = this.#run(run);
    known.said.push(outcome);
    known.saidAt ??= this.#world.time.now;
  }

  refused(run: string, invariant: string): void {
    this.#run(run).refused = invariant;
  }

  called(run: string, by: SimManager): void {
    this.#run(run).called = { by, at: this.#world.time.now };
  }

  granted(run: string, by: SimManager, until: number): void {
    this.#run(run).granted = { by, until };
  }

  /** Records that the answer to a write was lost; its writer must read the record. */
  unsure(by: SimManager): void {
    for (const [key, end] of this.#ends) if (end.by === by) this.#ends.delete(key);
  }

  written(key: string, next: RunRecord | undefined, before: RunRecord | undefined): void {
    if (!next) {
      this.#ends.delete(key);
      this.#applying.delete(key);
      return;
    }
    const about = (): string => `${key}: ${JSON.stringify(before)} → ${JSON.stringify(next)}`;
    const hasCredential = next.credentialId !== undefined || next.previousCredential !== undefined;
    assertInvariant(!hasCredential || next.phase === 'Running', 'I1: a credential ends with its run', about);
    assertInvariant(next.seq >= (before?.seq ?? 0), 'I5: seq does not decrease', about);
    const isStart = !before || next.seq > before.seq;
    if (next.asynchronous && !before?.asynchronous) this.#run(`${key}#${next.seq}`).asyncAt = this.#world.time.now;
    if (isStart) this.#checkStart(key, next, before, about);
    const { writer } = this.#world;
    const isOwn = this.#writers.get(key) === writer;
    this.#writers.set(key, writer);
    if (next.phase === 'Applying') this.#applying.set(key, writer);
    else if (isStart || this.#applying.get(key) === writer) this.#applying.delete(key);
    if (before && isOwn && !isStart && hasCredential && next.credentialId !== before.credentialId) {
      // The answer with the new token may be lost.
      const isKept = next.previousCredential?.id === before.credentialId;
      assertInvariant(isKept, 'I7: a replaced token stays valid for a while', about);
    }
    const { lastOutcome: last } = next;
    const old = before?.lastOutcome;
    if (last && last.seq === old?.seq)
      assertInvariant(isDeepStrictEqual(last, old), 'I4, I6: a final outcome never changes', about);
    else if (last) this.#checkEnd(key, next, last, before, about);
    if (isStart || last?.seq !== old?.seq || next.phase !== 'Idle') return;
    // The run did not happen.
    this.#ends.delete(key);
    assertInvariant(next.attempt === before.attempt, 'I12: a run that was not accepted counts no attempt', about);
  }

  #checkStart(key: string, next: RunRecord, before: RunRecord | undefined, about: () => string): void {
    const isSame = before?.inputsDigest === next.inputsDigest && before?.operation === next.operation;
    const attempts = before && isSame ? before.attempt : 0;
    assertInvariant(next.attempt === attempts, 'I2: changed inputs do not wait for the backoff', about);
    assertInvariant(next.phase === 'Running', 'I9: a run starts in phase Running', about);
    if (before) {
      assertInvariant(next.seq === before.seq + 1, 'I9: seq has no gaps', about);
      assertInvariant(before.phase === 'Idle', 'I9: an active run ends before the next one starts', about);
    }
    this.#started.add(`${key}#${next.seq}`);
    this.#checkOfEntry(key, next, about);
    this.#checkDue(key, next, about);
    this.#ends.delete(key);
  }

  /** Compares with the entry at the time of the decision. */
  #checkOfEntry(key: string, next: RunRecord, about: () => string): void {
    const start = this.#world.writer?.starting.get(key);
    assertInvariant(start !== undefined, 'I9: each run has its own token', about);
    const { entry, registration } = start;
    const { deleting, suspended, disabled, annotations, bytes, content, ref } = entry;
    const { name } = registration;
    assertInvariant(
      next.entry.uid === ref.uid && key.startsWith(`${ref.uid}/`),
      'I19: a run belongs to the existing entry',
      about,
    );
    assertInvariant(
      next.operation === (deleting ? 'delete' : 'reconcile'),
      'I18: only an allowed operation starts',
      about,
    );
    assertInvariant(!suspended, 'I18: no start while suspended', about);
    assertInvariant(deleting || !disabled.has(name), 'I18: no start of a disabled component', about);
    assertInvariant(
      annotations[abandonAnnotation(name)] === undefined,
      'I18: no start of an abandoned component',
      about,
    );
    assertInvariant(deleting || bytes <= maxEntryBytes, 'I20: no start for an entry that is too large', about);
    const digest = digestInputs(content, registration, annotations[forceAnnotation(name)]);
    assertInvariant(next.inputsDigest === digest, 'I10: the digest belongs to the observed version', about);
  }

  /** Checks runs that only a timer triggered. */
  #checkDue(key: string, { reasons, inputsDigest }: RunRecord, about: () => string): void {
    const { writer, time } = this.#world;
    const end = this.#ends.get(key);
    const [reason] = reasons;
    if (!end || !writer || writer.isGuarded || inputsDigest === undefined || reasons.length !== 1) return;
    if (reason !== wakeReason(end.outcome)) return;
    const isOwn = end.by === writer;
    const dueAt = end.at + end.delayMs - (isOwn ? 0 : clocksApartMs);
    const invariant = isOwn
      ? 'I22: no clock makes a timed run early'
      : 'I22: no run is early by more than the clock difference';
    assertInvariant(time.now >= dueAt - 1, invariant, () => `${dueAt - time.now} ms: ${about()}`);
  }

  #checkEnd(key: string, next: RunRecord, last: LastOutcome, before: RunRecord | undefined, about: () => string): void {
    const { time, writer } = this.#world;
    const run = `${key}#${last.seq}`;
    assertInvariant(last.seq === next.seq, 'I3: an outcome is of the current run', about);
    assertInvariant(
      next.phase === 'Idle' && next.credentialId === undefined,
      'I1: a credential ends with its run',
      about,
    );
    const known = this.#run(run);
    const isRetry = last.outcome === 'Retry';
    assertInvariant(isRetry || known.refused === undefined, known.refused ?? '', about);
    assertInvariant(
      isRetry || known.said.includes(last.outcome),
      'I3: a run without a reported outcome ends with Retry',
      about,
    );
    const isRefusedCall = wasNotAccepted(last.reason);
    // Retries and calls that were not accepted count apart. Any accepted run ends the count of the latter.
    const isOfOtherKind = isRefusedCall !== wasNotAccepted(before?.lastOutcome?.reason);
    const attempt = isOfOtherKind ? 0 : (before?.attempt ?? 0);
    const attempts = last.outcome === 'Done' ? 0 : attempt + (isRetry ? 1 : 0);
    assertInvariant(next.attempt === attempts, 'I12: only Retry counts an attempt', about);
    const delayMs = (next.nextAtMs ?? 0) - last.endedAtMs;
    assertInvariant(delayMs >= 0, 'I2: a finished key runs again', about);
    if (!writer) return;
    if (last.reason === 'LeaseOver') {
      // The registration when this manager became leader.
      const isAsync = before?.phase === 'Running' && known.asyncAt < writer.leadsSince;
      this.#checkLost(known, writer, next.component, isAsync, about);
    }
    if (isRefusedCall)
      assertInvariant(delayMs <= maxRefusedMs, 'I2: a call that was not accepted is soon repeated', about);
    else if (isRetry) this.#checkRetry(key, last, delayMs, attempt, about);
    const at = known.saidAt ?? known.called?.at ?? time.now - slackMs;
    if (delayMs > 0) this.#ends.set(key, { by: writer, at, outcome: last.outcome, delayMs });
  }

  #checkLost(run: Run, by: SimManager, component: string, isAsync: boolean, about: () => string): void {
    const { granted, called } = run;
    const { now } = this.#world.time;
    // A paused manager does not know deadlines granted since, and its writes do not count.
    if (by.isGuarded) return;
    const isCaller = called?.by === by;
    let until = Number.NEGATIVE_INFINITY;
    if (granted?.by === by) until = granted.until;
    else if (isCaller && !granted) until = called.at + this.#timingOf(component).timeoutMs + callSlackMs;
    // The deadline of another manager's run is only a hint, but the adopting manager waits for some time.
    else if (!isCaller && isAsync) until = by.leadsSince + graceMs;
    assertInvariant(now + 1 >= until, 'I22: no run expires before its deadline', about);
  }

  #checkRetry(key: string, { seq }: LastOutcome, delayMs: number, attempt: number, about: () => string): void {
    const { time, faulty } = this.#world;
    const of = parseKey(key);
    const { baseMs, capMs } = this.#timingOf(of?.component ?? '');
    const longestMs = Math.min(capMs, baseMs * 2 ** attempt);
    assertInvariant(delayMs <= longestMs + 1, 'I2: a retry waits exactly for its backoff', about);
    if (delayMs > 0) {
      this.backoffs.sum += delayMs / longestMs;
      this.backoffs.count += 1;
    }
    if (faulty || !of) return;
    time.after(capMs + slackMs, () => {
      const entry = this.#world.entry(of.entryUid);
      const latest = this.#world.inventory.record(of)?.record;
      if (!entry || entry.deleting || entry.disabled.has(of.component) || entry.bytes > maxEntryBytes) return;
      const isOver = latest === undefined || latest.seq > seq || latest.lastOutcome?.outcome !== 'Retry';
      assertInvariant(isOver, 'I2: a key runs again within its deadline and its backoff', about);
    });
  }

  #timingOf(component: string) {
    const { timeoutSeconds = 0, retry } = this.#world.components.get(component)?.registration ?? {};
    const { baseSeconds = 0, capSeconds = 0 } = retry ?? {};
    return { timeoutMs: timeoutSeconds * 1000, baseMs: baseSeconds * 1000, capMs: capSeconds * 1000 };
  }

  #run(run: string): Run {
    let known = this.#runs.get(run);
    if (!known) {
      known = {
        said: [],
        saidAt: undefined,
        refused: undefined,
        called: undefined,
        asyncAt: Number.POSITIVE_INFINITY,
        granted: undefined,
      };
      this.#runs.set(run, known);
    }
    return known;
  }
}

/** Reason of the next run after this outcome. */
function wakeReason(outcome: OutcomeName): string {
  if (outcome === 'Retry') return 'Retry';
  return outcome === 'Progressing' ? 'Requeue' : 'Interval';
}

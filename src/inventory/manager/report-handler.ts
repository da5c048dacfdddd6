import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import { type RunExtension, readReport } from '../../api/inventory/contract/report.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { Log } from '../../observe/log.ts';
import { extension } from '../core/endings.ts';
import type { Facts } from '../core/facts.ts';
import type { ActiveRun, RejectedReportCode, RunToken } from '../core/memory.ts';
import { isComponentAbandoned, isDraining } from '../core/plan.ts';
import type { LastOutcome, RunRecord } from '../core/run-record.ts';
import { type ComponentKey, keyText, runId } from '../key.ts';
import type { ReportAnswer, ReportSink, RunStore, TokenIssuer } from '../ports.ts';
import type { FactsReader } from './facts-reader.ts';
import type { KeyMemory, Memories } from './memories.ts';
import type { RunReconciler } from './run-reconciler.ts';

interface ReportHandlerDeps {
  readonly memories: Memories;
  readonly reconciler: RunReconciler;
  readonly facts: FactsReader;
  readonly runs: Pick<RunStore, 'find'>;
  readonly tokens: TokenIssuer;
  /** Reconciles the key: its schedule may have changed. */
  readonly enqueue: (keyText: string) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Log;
}

type ReportedRun = ComponentKey & { readonly seq: number };

type Rejection = Extract<ReportAnswer, { readonly status: 200 }>['rejection'];

/** To recognize repeated reports of a run that a report ended. */
interface EndedRun {
  readonly seq: number;
  readonly credentials: readonly string[];
  /** Digest of the report with the outcome. */
  readonly report: string;
  readonly outcome: Outcome;
  readonly rejection: Rejection;
}

/** What a report needs to know of the run that it names, while it is Running. */
interface Running {
  readonly facts: Facts;
  readonly record: RunRecord;
  readonly run: ActiveRun;
}

/** A heartbeat replaces a token that expires within this time. */
const refreshMs = 300_000;
/** Keys for which the handler remembers the last ended run. */
const maxEndedRuns = 10_000;

/** Handles reports on the leader. An outcome counts even before the component answered the call. */
export class ReportHandler implements ReportSink {
  readonly #deps: ReportHandlerDeps;
  readonly #endedRuns = new RecentMap<string, EndedRun>(maxEndedRuns);

  constructor(deps: ReportHandlerDeps) {
    this.#deps = deps;
  }

  async report(run: ReportedRun, credentialId: string, body: unknown): Promise<ReportAnswer> {
    const { memories, reconciler } = this.#deps;
    const memory = memories.get(keyText(run));
    if (!memory) return this.#afterRun(run, credentialId, body);
    try {
      return await reconciler.exclusively(memory, () => this.#handle(memory, run, credentialId, body));
    } catch (error) {
      return notStored(describe(error));
    }
  }

  async rejected(run: ReportedRun, credentialId: string, code: RejectedReportCode): Promise<void> {
    const { memories, reconciler } = this.#deps;
    const memory = memories.get(keyText(run));
    if (!memory) return;
    // The component still gets its answer.
    await reconciler
      .exclusively(memory, async () => {
        const current = this.#running(memory, run);
        if (current && this.#mayReport(current, credentialId)) reconciler.rejected(current.facts, run, code);
      })
      .catch(() => undefined);
  }

  async #handle(memory: KeyMemory, run: ReportedRun, credentialId: string, body: unknown): Promise<ReportAnswer> {
    const { reconciler } = this.#deps;
    const current = this.#running(memory, run);
    if (!current) return this.#afterRun(run, credentialId, body);
    if (!this.#mayReport(current, credentialId)) return foreignCredential;
    const { record } = current;
    const read = readReport(body, { id: runId(run, run.seq), operation: record.operation });
    if (!read.ok) {
      reconciler.rejected(current.facts, run, 'InvalidReport');
      const [first] = read.errors;
      return {
        status: 400,
        code: 'InvalidReport',
        message: first ? `${first.field}: ${first.message}` : 'the report violates the contract; correct it',
      };
    }
    // The schedule of the key may have changed.
    const { value } = read;
    try {
      if (value.kind === 'outcome') return await this.#outcome(memory, run, current, value.outcome, digestOf(body));
      if (isComponentAbandoned(current.facts.mayRun)) return runOver(run);
      if (isDraining(current.facts, record) || !this.#isAuthorized(record, credentialId)) return drainingRun;
      return await this.#heartbeat(memory, run, current, value.leaseSeconds);
    } finally {
      this.#deps.enqueue(memory.text);
    }
  }

  async #outcome(
    memory: KeyMemory,
    reported: ReportedRun,
    { run }: Running,
    outcome: Outcome,
    report: string,
  ): Promise<ReportAnswer> {
    const { reconciler, runs } = this.#deps;
    if (run.answer?.kind !== 'outcome') run.answer = { kind: 'outcome', outcome, report };
    else if (run.answer.report !== report) return this.#differs(reported);
    // A component cannot drive writes by repeated reports.
    else if (reconciler.isBackingOff(memory))
      return notStored('a write failed a moment ago, and the server repeats it');
    const ended = { seq: reported.seq, credentials: run.credentials, report, outcome };
    // Even if storing it fails: the server repeats that.
    this.#endedRuns.set(memory.text, { ...ended, rejection: undefined });
    await reconciler.proceed(memory, { mayStart: false });
    const left = runs.find(memory.key)?.record;
    if (left && left.lastOutcome?.seq !== reported.seq) {
      this.#endedRuns.delete(memory.text);
      return runOver(reported);
    }
    const rejection = rejectionOf(left?.lastOutcome, reported, outcome);
    this.#endedRuns.set(memory.text, { ...ended, rejection });
    return { status: 200, extension: undefined, rejection };
  }

  async #heartbeat(
    memory: KeyMemory,
    reported: ReportedRun,
    { run }: Running,
    leaseSeconds: number | undefined,
  ): Promise<ReportAnswer> {
    const { reconciler, clock } = this.#deps;
    const remainingMs = run.startedAt + run.registration.maxRunMs - clock.monotonic();
    if (remainingMs <= 0) return runOver(reported);
    const wantedMs = leaseSeconds === undefined ? run.registration.heartbeatTimeoutMs : leaseSeconds * 1000;
    const heartbeatTimeoutMs = Math.min(wantedMs, remainingMs);
    const token = await this.#refreshedToken(run, memory);
    for (;;) {
      const current = this.#running(memory, reported);
      if (!current) return runOver(reported);
      const extended = extension(current.facts, current.record, run, heartbeatTimeoutMs, token);
      // The next heartbeat returns the same token if this one is not stored: after a second
      // refresh, the record would lack the ID of the one that the component uses.
      if (token) run.pendingToken = token;
      if (await reconciler.extend(current.facts, memory, extended)) break;
    }
    if (token) {
      run.token = token;
      run.pendingToken = undefined;
      run.credentials.push(token.id);
    }
    reconciler.heartbeat(memory);
    return { status: 200, extension: extensionOf(heartbeatTimeoutMs, token) };
  }

  /** The token for a heartbeat to return, if the current one expires soon or is unknown. */
  async #refreshedToken({ pendingToken, token, registration }: ActiveRun, memory: KeyMemory) {
    const { facts, tokens, clock, signal } = this.#deps;
    const isFresh = ({ expiresAtMs }: RunToken): boolean => expiresAtMs - clock.now() > refreshMs;
    if (pendingToken && isFresh(pendingToken)) return pendingToken;
    const entry = facts.refresh(memory)?.entry;
    if (!entry || (token && isFresh(token))) return undefined;
    return tokens.forRun(entry, registration, signal);
  }

  #running(memory: KeyMemory, { seq }: ReportedRun): Running | undefined {
    const facts = this.#deps.facts.refresh(memory);
    const record = facts?.stored?.record;
    const { run } = memory;
    return facts && record && run && record.seq === seq && record.phase === 'Running'
      ? { facts, record, run }
      : undefined;
  }

  /** A run without a credential may no longer write, but may report its outcome. */
  #mayReport({ record, run }: Running, credentialId: string): boolean {
    return (
      this.#isAuthorized(record, credentialId) ||
      (record.credentialId === undefined && run.credentials.includes(credentialId))
    );
  }

  #isAuthorized({ credentialId, previousCredential: previous }: RunRecord, id: string): boolean {
    return credentialId === id || (previous?.id === id && previous.expiresAtMs > this.#deps.clock.now());
  }

  /** Accepts a repetition of the outcome that ended the run, and no other report. */
  #afterRun(run: ReportedRun, credentialId: string, body: unknown): ReportAnswer {
    const ended = this.#endedRuns.get(keyText(run));
    if (ended?.seq !== run.seq) return runOver(run);
    if (!ended.credentials.includes(credentialId)) return foreignCredential;
    if (ended.report !== digestOf(body)) return this.#differs(run);
    const record = this.#deps.runs.find(run)?.record;
    if (record?.seq === run.seq) {
      if (record.phase !== 'Idle') return notStored('its outputs are not written yet');
      if (record.lastOutcome?.seq !== run.seq) return runOver(run);
    }
    const rejection = rejectionOf(record?.lastOutcome, run, ended.outcome) ?? ended.rejection;
    return { status: 200, extension: undefined, rejection };
  }

  #differs(run: ReportedRun): ReportAnswer {
    this.#deps.log.warn('report of a finished run ignored; it differs from the outcome that ended the run', {
      run: runId(run, run.seq),
    });
    return {
      status: 409,
      code: 'OutcomeDiffers',
      message: 'the run has already ended; the server ignores reports that differ from its outcome; stop reporting',
    };
  }
}

function extensionOf(heartbeatTimeoutMs: number, token: RunToken | undefined): RunExtension {
  const leaseSeconds = Math.max(1, Math.floor(heartbeatTimeoutMs / 1000));
  if (!token) return { leaseSeconds };
  return { leaseSeconds, auth: { token: token.token, expires: formatTime(token.expiresAtMs) } };
}

function rejectionOf(last: LastOutcome | undefined, { seq }: ReportedRun, reported: Outcome): Rejection {
  if (last?.seq !== seq || last.reason === undefined || last.outcome === reported.outcome) return undefined;
  return { code: last.reason, message: last.message ?? '' };
}

const digestOf = (body: unknown): string => sha256Hex(canonicalJson(body));

const foreignCredential: ReportAnswer = {
  status: 403,
  code: 'ForeignCredential',
  message: 'the token has expired or belongs to another run; use the latest token of the reported run',
};

/** The entry is being deleted, and the run may no longer write. */
const drainingRun: ReportAnswer = {
  status: 403,
  code: 'ForeignCredential',
  message:
    'the entry is being deleted, so the run can no longer be extended; stop working on it, and report its outcome',
};

/** The server repeats its writes. */
const notStored = (why: string): ReportAnswer => ({
  status: 503,
  code: 'Unavailable',
  message: `the report was not stored: ${why}; report again`,
});

const runOver = (run: ReportedRun): ReportAnswer => ({
  status: 409,
  code: 'RunOver',
  message: `run ${runId(run, run.seq)} has ended, or has reached its maximum duration; stop working on it`,
});

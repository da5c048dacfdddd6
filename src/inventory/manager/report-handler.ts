import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import { type RunExtension, readReport } from '../../api/inventory/contract/report.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { formatTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { RejectedReportCode } from '../core/key-state.ts';
import type { LastOutcome, StoredRecord } from '../core/run-record.ts';
import { type ComponentKey, keyText, runId } from '../key.ts';
import type { InventoryStore, IssuedToken, ReportAnswer, ReportSink } from '../ports.ts';
import { outcomeEvent } from './component-call.ts';
import type { EventFactory } from './entry-snapshot.ts';
import type { KeyLoops } from './key-loop.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import type { KeyMemory } from './key-memory.ts';

interface ReportHandlerDeps
  extends Pick<KeyLoopDeps, 'tokens' | 'snapshots' | 'outputWriter' | 'clock' | 'signal' | 'reporter' | 'log'> {
  readonly entries: InventoryStore;
}

type Handle = (eventOf: EventFactory) => Promise<void>;
type ReportedRun = ComponentKey & { readonly seq: number };

type Rejection = Extract<ReportAnswer, { readonly status: 200 }>['rejection'];

/** To recognize repeated reports of a run that a report ended. */
interface EndedRun {
  readonly seq: number;
  readonly credentials: readonly string[];
  /** Of the report with the outcome. */
  readonly outcome: string;
  readonly rejection: Rejection;
}

/** A heartbeat replaces a token that expires within this time. */
const refreshMs = 300_000;
/** Keys for which the handler remembers the last ended run. */
const maxEndedRuns = 10_000;

/** Handles reports on the leader. An outcome counts even before the component answered the call. */
export class ReportHandler implements ReportSink {
  readonly #loops: KeyLoops;
  readonly #deps: ReportHandlerDeps;
  readonly #endedRuns = new RecentMap<string, EndedRun>(maxEndedRuns);

  constructor(loops: KeyLoops, deps: ReportHandlerDeps) {
    this.#loops = loops;
    this.#deps = deps;
  }

  async report(run: ReportedRun, credentialId: string, body: unknown): Promise<ReportAnswer> {
    const loop = this.#loops.get(keyText(run));
    if (!loop) return this.#afterRun(run, credentialId, body);
    try {
      return await loop.report((memory, handle) => this.#handle(memory, run, credentialId, body, handle));
    } catch (error) {
      return {
        status: 503,
        code: 'Unavailable',
        message: `the report was not stored: ${describe(error)}; report again`,
      };
    }
  }

  async rejected(run: ReportedRun, credentialId: string, code: RejectedReportCode): Promise<void> {
    const recorded = this.#loops.get(keyText(run))?.report(async (memory, handle) => {
      const stored = currentRecord(memory, run);
      if (stored && this.#mayReport(memory, stored, credentialId)) await this.#reject(run, code, handle);
    });
    // The component still gets its answer.
    await recorded?.catch(() => undefined);
  }

  async #reject({ component }: ReportedRun, code: RejectedReportCode, handle: Handle): Promise<void> {
    this.#deps.reporter.reportRejected(component, code);
    await handle(({ inputs }) => ({ kind: 'reportRejected', code, inputs }));
  }

  async #handle(
    memory: KeyMemory,
    run: ReportedRun,
    credentialId: string,
    body: unknown,
    handle: Handle,
  ): Promise<ReportAnswer> {
    const stored = currentRecord(memory, run);
    if (!stored) return this.#afterRun(run, credentialId, body, memory.unstored);
    if (!this.#mayReport(memory, stored, credentialId)) return foreignCredential;
    const read = readReport(body, { id: runId(run, run.seq), operation: stored.record.operation });
    if (!read.ok) {
      await this.#reject(run, 'InvalidReport', handle);
      const [first] = read.errors;
      return {
        status: 400,
        code: 'InvalidReport',
        message: first ? `${first.field}: ${first.message}` : 'the report violates the contract; correct it',
      };
    }
    if (read.value.kind === 'heartbeat') {
      return this.#isAuthorized(stored, credentialId)
        ? this.#heartbeat(memory, run, read.value.leaseSeconds, handle)
        : drainingRun;
    }
    const credentials = memory.run?.credentials ?? [credentialId];
    await handle(outcomeEvent(this.#deps, memory.run, read.value.outcome));
    const { unstored, state } = memory;
    // In `gone`, the state keeps the record before the outcome.
    const isOutcomeMissing =
      state.phase !== 'gone' && state.stored !== undefined && state.stored.record.lastOutcome?.seq !== run.seq;
    if (!unstored && isOutcomeMissing) return runOver(run);
    const rejection = rejectionOf(state.stored?.record.lastOutcome, run, read.value.outcome);
    this.#endedRuns.set(keyText(run), { seq: run.seq, credentials, outcome: fingerprint(body), rejection });
    return unstored ? notStored : { status: 200, extension: undefined, rejection };
  }

  async #heartbeat(
    memory: KeyMemory,
    run: ReportedRun,
    leaseSeconds: number | undefined,
    handle: Handle,
  ): Promise<ReportAnswer> {
    const current = memory.run;
    const remainingMs = memory.remainingMs(this.#deps.clock.monotonic());
    if (!current || remainingMs <= 0) return runOver(run);
    const heartbeatTimeoutMs = Math.min(
      (leaseSeconds ?? current.registration.heartbeatTimeoutMs / 1000) * 1000,
      remainingMs,
    );
    const token = await this.#refreshToken(memory);
    const credential = token && { id: token.id, expiresAtMs: token.expiresAtMs };
    await handle(({ inputs }) => ({ kind: 'heartbeat', heartbeatTimeoutMs, credential, inputs }));
    if (!currentRecord(memory, run)) return runOver(run);
    if (memory.unstored) {
      // The next heartbeat returns the same token: after a second refresh, the record would lack
      // the ID of the one that the component uses.
      if (token) memory.run?.setPendingToken(token);
      return notStored;
    }
    if (token) memory.run?.addToken(token);
    return { status: 200, extension: extensionOf(heartbeatTimeoutMs, token) };
  }

  /** The token for a heartbeat to return, if the current one expires soon or is unknown. */
  async #refreshToken(memory: KeyMemory): Promise<IssuedToken | undefined> {
    const { entries, tokens, clock, signal } = this.#deps;
    const current = memory.run;
    const entry = entries.find(memory.key.entryUid);
    if (!current || !entry) return undefined;
    const isFresh = (token: IssuedToken): boolean => token.expiresAtMs - clock.now() > refreshMs;
    if (current.pendingToken && isFresh(current.pendingToken)) return current.pendingToken;
    if (current.token && isFresh(current.token)) return undefined;
    return tokens.forRun(entry, current.registration, signal);
  }

  /** Whether the token is of the current run, which may be draining. */
  #mayReport(memory: KeyMemory, stored: StoredRecord, credentialId: string): boolean {
    return this.#isAuthorized(stored, credentialId) || isDrainingRunCredential(memory, credentialId);
  }

  #isAuthorized({ record }: StoredRecord, id: string): boolean {
    const previous = record.previousCredential;
    return record.credentialId === id || (previous?.id === id && previous.expiresAtMs > this.#deps.clock.now());
  }

  /** Accepts a repetition of the outcome that ended the run, and no other report. */
  #afterRun(run: ReportedRun, credentialId: string, body: unknown, unstored = false): ReportAnswer {
    const ended = this.#endedRuns.get(keyText(run));
    if (ended?.seq !== run.seq) return runOver(run);
    if (!ended.credentials.includes(credentialId)) return foreignCredential;
    if (ended.outcome === fingerprint(body))
      return unstored ? notStored : { status: 200, extension: undefined, rejection: ended.rejection };
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

/** Only while the record is Running. */
function currentRecord({ state }: KeyMemory, { seq }: ReportedRun): StoredRecord | undefined {
  const { stored } = state;
  return stored && stored.record.seq === seq && stored.record.phase === 'Running' ? stored : undefined;
}

/** Such a token may no longer write, but may report the outcome. */
const isDrainingRunCredential = ({ state, run }: KeyMemory, credentialId: string): boolean =>
  state.phase === 'draining' && run?.credentials.includes(credentialId) === true;

function extensionOf(heartbeatTimeoutMs: number, token: IssuedToken | undefined): RunExtension {
  const leaseSeconds = Math.max(1, Math.floor(heartbeatTimeoutMs / 1000));
  if (!token) return { leaseSeconds };
  return { leaseSeconds, auth: { token: token.token, expires: formatTime(token.expiresAtMs) } };
}

function rejectionOf(last: LastOutcome | undefined, { seq }: ReportedRun, reported: Outcome): Rejection {
  if (last?.seq !== seq || last.reason === undefined || last.outcome === reported.outcome) return undefined;
  return { code: last.reason, message: last.message ?? '' };
}

const fingerprint = (body: unknown): string => sha256Hex(canonicalJson(body));

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

/** While the server retries a write or removal that the API server rejected. */
const notStored: ReportAnswer = {
  status: 503,
  code: 'Unavailable',
  message:
    'the server could not store the report, because the API server rejected a write; the server retries; report again',
};

const runOver = (run: ReportedRun): ReportAnswer => ({
  status: 409,
  code: 'RunOver',
  message: `run ${runId(run, run.seq)} has ended, or has reached its maximum duration; stop working on it`,
});

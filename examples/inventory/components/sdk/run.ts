import { type Clock, sleep } from './clock.ts';
import {
  type Component,
  type EntryAccessor,
  maxMessage,
  type Outcome,
  type ReconcileRequest,
  type RunContext,
  type RunExtension,
} from './contract.ts';
import { CodedError, describe } from './values.ts';

export type FirstAnswer =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'accepted'; readonly leaseSeconds: number | undefined };

/** `status` is the HTTP status. Only after a 503 may the same report succeed later. */
export type ReportAnswer =
  | { readonly status: 200; readonly extension: RunExtension | undefined }
  | {
      readonly status: 400 | 403 | 409 | 503;
      readonly code: 'InvalidReport' | 'ForeignCredential' | 'OutcomeDiffers' | 'RunOver' | 'Unavailable';
      readonly message: string;
    };

/** Connections of a run to the API server and the callback. */
export interface RunTransports {
  /** `token` returns the current one. Throws `ForeignEntry` for an entry of another API server. */
  openEntry(request: ReconcileRequest, token: () => string, signal: AbortSignal): EntryAccessor;
  /** Rejects without a usable answer; `Run` then reports again. */
  report(request: ReconcileRequest, token: string, body: object, signal: AbortSignal): Promise<ReportAnswer>;
}

/** If neither the component nor the server names one; the request has no heartbeat timeout. */
const DEFAULT_HEARTBEAT_TIMEOUT_S = 60;
/** Between attempts to deliver a report. */
const RETRY_MS = 1_000;

/** One run of a component. */
export class Run implements RunContext {
  readonly request: ReconcileRequest;
  readonly entry: EntryAccessor;
  /** After the first heartbeat or the outcome. Never rejects; pending until `execute`. */
  readonly answer: Promise<FirstAnswer>;
  readonly #component: Component;
  readonly #transports: RunTransports;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #resolveAnswer: (first: FirstAnswer) => void = () => undefined;
  #token: string;
  #accepted = false;
  /** Of the next report, monotonic milliseconds. */
  #deadline = 0;

  constructor(component: Component, request: ReconcileRequest, transports: RunTransports, clock: Clock) {
    this.#component = component;
    this.request = request;
    this.#transports = transports;
    this.#clock = clock;
    this.#token = request.auth.token;
    this.answer = new Promise((resolve) => {
      this.#resolveAnswer = resolve;
    });
    this.entry = transports.openEntry(request, () => this.#token, this.signal);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether the run continues asynchronously. */
  get accepted(): boolean {
    return this.#accepted;
  }

  /** Aborts `signal` with CodedError `RunAbandoned`. The component must react to it. */
  abandon(why: string): void {
    this.#abort.abort(new CodedError('RunAbandoned', why));
  }

  /** Resolves when the outcome is delivered or the run was abandoned. Never rejects. */
  async execute(): Promise<void> {
    const outcome = await this.#outcome();
    if (!this.#accepted) return this.#resolveAnswer({ kind: 'outcome', outcome });
    await this.#deliver(outcome);
  }

  async heartbeat(timeoutSeconds?: number): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.#accepted) {
      this.#accepted = true;
      this.#extendDeadline(timeoutSeconds ?? DEFAULT_HEARTBEAT_TIMEOUT_S);
      return this.#resolveAnswer({ kind: 'accepted', leaseSeconds: timeoutSeconds });
    }
    const extension = await this.#deliver({
      heartbeat: timeoutSeconds === undefined ? {} : { leaseSeconds: timeoutSeconds },
    });
    if (!extension) this.signal.throwIfAborted();
    if (extension?.auth) this.#token = extension.auth.token;
    this.#extendDeadline(extension?.leaseSeconds ?? timeoutSeconds ?? DEFAULT_HEARTBEAT_TIMEOUT_S);
  }

  async #outcome(): Promise<Outcome> {
    try {
      return await this.#component.reconcile(this);
    } catch (error) {
      return { outcome: 'Retry', message: describe(error).slice(0, maxMessage) };
    }
  }

  #extendDeadline(timeoutSeconds: number): void {
    this.#deadline = this.#clock.monotonic() + timeoutSeconds * 1000;
  }

  /** Repeats a report until the server accepts it. Abandons the run if rejected, or too late. */
  async #deliver(body: object): Promise<RunExtension | undefined> {
    const report = { run: this.request.run.id, ...body };
    while (!this.signal.aborted) {
      const answer = await this.#transports
        .report(this.request, this.#token, report, this.signal)
        .catch((error: unknown) => ({ status: 503, message: describe(error) }) as const);
      if (answer.status === 200) return answer.extension;
      if (answer.status !== 503) this.abandon(`the server rejected the report: ${answer.message}`);
      else if (this.#clock.monotonic() + RETRY_MS >= this.#deadline)
        this.abandon('the server accepted no report before the deadline of the run');
      else await sleep(this.#clock, RETRY_MS, this.signal).catch(() => undefined);
    }
    return undefined;
  }
}

import { maxMessage, type Outcome } from '../../api/inventory/contract/outcome.ts';
import type { RunExtension } from '../../api/inventory/contract/report.ts';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { deferred } from '../../kit/promises.ts';
import type { Component, EntryAccessor, ReportAnswer, RunContext } from '../ports.ts';

/** The answer of a component to the call: its outcome, or 202. */
export type FirstAnswer =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'accepted'; readonly leaseSeconds: number | undefined };

/** Connections of a run to the API server and the callback, over HTTP or within a process. */
export interface RunTransports {
  /**
   * Opens the accessor with which the run reads and writes its entry. `token` returns the current token at each call. Throws CodedError
   * `ForeignEntry` if the request names no entry of the configured API server.
   */
  openEntry(request: ReconcileRequest, token: () => string, signal: AbortSignal): EntryAccessor;
  /** Sends one report to the callback. Rejects if there was no usable answer; `Run` then reports again. */
  report(request: ReconcileRequest, token: string, body: object, signal: AbortSignal): Promise<ReportAnswer>;
}

/**
 * Heartbeat timeout, seconds, if neither the component nor the server names one. The request does not contain the heartbeat timeout of the
 * registration.
 */
const DEFAULT_HEARTBEAT_TIMEOUT_S = 60;
/** Delay between two attempts to deliver a report, milliseconds. */
const RETRY_MS = 1_000;

/** One run of a component, over HTTP or within a process. */
export class Run implements RunContext {
  readonly request: ReconcileRequest;
  readonly entry: EntryAccessor;
  /** The answer to the call, after the first heartbeat or the outcome. Never rejects. Stays pending until `execute` is called. */
  readonly answer: Promise<FirstAnswer>;
  readonly #component: Component;
  readonly #transports: RunTransports;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  readonly #answered = deferred<FirstAnswer>();
  #token: string;
  #accepted = false;
  /** Deadline of the next report, monotonic milliseconds. */
  #deadline = 0;

  constructor(component: Component, request: ReconcileRequest, transports: RunTransports, clock: Clock) {
    this.#component = component;
    this.request = request;
    this.#transports = transports;
    this.#clock = clock;
    this.#token = request.auth.token;
    this.answer = this.#answered.promise;
    this.entry = transports.openEntry(request, () => this.#token, this.signal);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether the run continues asynchronously after the answer. */
  get accepted(): boolean {
    return this.#accepted;
  }

  /**
   * Aborts `signal` with CodedError `RunAbandoned`. It does not stop the component, which must react to `signal`. `why` is the message of
   * the error.
   */
  abandon(why: string): void {
    this.#abort.abort(new CodedError('RunAbandoned', why));
  }

  /** Runs the component. Resolves when the component has ended and its outcome is delivered or the run is abandoned. Never rejects. */
  async execute(): Promise<void> {
    const outcome = await this.#outcome();
    if (!this.#accepted) return this.#answered.resolve({ kind: 'outcome', outcome });
    await this.#deliver(outcome);
  }

  async heartbeat(timeoutSeconds?: number): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.#accepted) {
      this.#accepted = true;
      this.#extendDeadline(timeoutSeconds ?? DEFAULT_HEARTBEAT_TIMEOUT_S);
      return this.#answered.resolve({ kind: 'accepted', leaseSeconds: timeoutSeconds });
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

  /** Delivers a report. Repeats it until the server accepts it. Abandons the run if the server rejects it or the deadline passes. */
  async #deliver(body: object): Promise<RunExtension | undefined> {
    const report = { run: this.request.run.id, ...body };
    while (!this.signal.aborted) {
      const answer = await this.#transports
        .report(this.request, this.#token, report, this.signal)
        .catch((error: unknown) => ({ status: 503, message: describe(error) }) as const);
      if (answer.status === 200) return 'extension' in answer ? answer.extension : undefined;
      if (answer.status !== 503) this.abandon(`the server rejected the report: ${answer.message}`);
      else if (this.#clock.monotonic() + RETRY_MS >= this.#deadline)
        this.abandon('the server accepted no report before the deadline of the run');
      else await sleep(this.#clock, RETRY_MS, this.signal).catch(() => undefined);
    }
    return undefined;
  }
}

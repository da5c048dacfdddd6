import { maxMessage, type Outcome } from '../../api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { deferred } from '../../kit/promises.ts';
import type { Component, EntryAccessor, ReportAnswer, RunContext } from '../ports.ts';

/** What a component answers to a request: the outcome, or that it will report. */
export type FirstAnswer =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'accepted'; readonly leaseSeconds: number | undefined };

/** The way from a run to the world; over HTTP or within a process. */
export interface RunTransports {
  /** `token` gives the current one at each call. */
  entry(request: ReconcileRequest, token: () => string, signal: AbortSignal): EntryAccessor;
  /** Takes one report to the callback. Rejects when there was no answer. */
  report(request: ReconcileRequest, token: string, body: object, signal: AbortSignal): Promise<ReportAnswer>;
}

/** For leases that the registration decides on, seconds. */
const USUAL_LEASE = 60;
/** Between two deliveries of a report that nobody took. */
const AGAIN_MS = 1_000;

/** One run of a component, the same whichever way it was asked for. */
export class Run implements RunContext {
  readonly request: ReconcileRequest;
  readonly entry: EntryAccessor;
  /** Settles once; never rejects. */
  readonly answer: Promise<FirstAnswer>;
  readonly #component: Component;
  readonly #doors: RunTransports;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  readonly #answered = deferred<FirstAnswer>();
  #token: string;
  #accepted = false;
  #leaseUntil = 0;

  constructor(component: Component, request: ReconcileRequest, doors: RunTransports, clock: Clock) {
    this.#component = component;
    this.request = request;
    this.#doors = doors;
    this.#clock = clock;
    this.#token = request.auth.token;
    this.answer = this.#answered.promise;
    this.entry = doors.entry(request, () => this.#token, this.signal);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether it goes on after the answer. */
  get accepted(): boolean {
    return this.#accepted;
  }

  /** Nobody waits for the outcome any more. */
  abandon(why: string): void {
    this.#abort.abort(new CodedError('RunAbandoned', why));
  }

  /** Resolves when nothing of it is left; never rejects. */
  async execute(): Promise<void> {
    const outcome = await this.#outcome();
    if (!this.#accepted) return this.#answered.resolve({ kind: 'outcome', outcome });
    await this.#deliver(outcome);
  }

  async heartbeat(leaseSeconds?: number): Promise<void> {
    this.signal.throwIfAborted();
    if (!this.#accepted) {
      this.#accepted = true;
      this.#extend(leaseSeconds ?? USUAL_LEASE);
      return this.#answered.resolve({ kind: 'accepted', leaseSeconds });
    }
    const lease = await this.#deliver({ heartbeat: leaseSeconds === undefined ? {} : { leaseSeconds } });
    if (!lease) this.signal.throwIfAborted();
    if (lease?.auth) this.#token = lease.auth.token;
    this.#extend(lease?.leaseSeconds ?? leaseSeconds ?? USUAL_LEASE);
  }

  async #outcome(): Promise<Outcome> {
    try {
      return await this.#component.reconcile(this);
    } catch (error) {
      return { outcome: 'Retry', message: describe(error).slice(0, maxMessage) };
    }
  }

  #extend(leaseSeconds: number): void {
    this.#leaseUntil = this.#clock.monotonic() + leaseSeconds * 1000;
  }

  /** Repeats the delivery until it is taken or refused, or the lease is over: that is no retry of the run. */
  async #deliver(body: object) {
    const report = { run: this.request.run.id, ...body };
    while (!this.signal.aborted) {
      const answer = await this.#doors
        .report(this.request, this.#token, report, this.signal)
        .catch((error: unknown) => ({ status: 503, message: describe(error) }) as const);
      if (answer.status === 200) return 'extension' in answer ? answer.extension : undefined;
      if (answer.status !== 503) this.abandon(`the report was refused: ${answer.message}`);
      else if (this.#clock.monotonic() + AGAIN_MS >= this.#leaseUntil) this.abandon('nobody took the report in time');
      else await sleep(this.#clock, AGAIN_MS, this.signal).catch(() => undefined);
    }
    return undefined;
  }
}

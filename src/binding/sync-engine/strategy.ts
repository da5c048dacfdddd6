import { after, done, notReady, type Result } from '../../engine/result.ts';
import { type Problem, severityOf } from './problems.ts';
import type { Side } from './syncer.ts';

/**
 * The part of the sync that differs between bound objects and claimed objects. A strategy reads the state of both objects of a key and
 * plans actions; the engine runs them. Keys are those of the consumer's object.
 */
export interface SyncStrategy {
  readonly rules: SyncRules;
  /** What the key must wait for before it can be planned, such as a list; undefined if nothing is missing. */
  missing(key: string): string | undefined;
  /** The actions that sync the key's two objects, in order, from the current state. */
  plan(pass: SyncPass): readonly SyncAction[];
  /** Called at the end of a pass, unless `missing` names something. Drops state that the key no longer needs, and returns the key's state. */
  finish(key: string): KeyState;
  /** Drops the state of earlier runs of the controller. Called at each start, before the first event. */
  clear(): void;
}

/** How the engine treats failed and ineffective calls of a strategy. */
export interface SyncRules {
  /** Whether a 403 is reported at once, or only if it persists: a provider may grant permissions just after they are first needed. */
  readonly forbiddenAtOnce: boolean;
  /** Maximum pause between writes that the cluster accepts but does not keep, milliseconds. Infinity: never again with this content. */
  readonly ineffectiveCapMs: number;
  /** The problem to report if the cluster accepts a write but stores something else, once the pause between repeats exceeds 2 s. */
  readonly ineffective: Readonly<Record<Side, string>>;
}

/** State of a key at the end of a pass. */
export interface KeyState {
  /** The consumer's object, on which Events are recorded; undefined if there is none. */
  readonly consumer: { readonly key: string; readonly uid: string } | undefined;
  /** Whether neither side has an object of the key. */
  readonly isDeleted: boolean;
  /** Whether the server has written an object of the key, and the watch does not show that write yet. */
  readonly isAhead: boolean;
}

/** An action that a strategy plans. */
export type SyncAction =
  /** Marks the key as not ready until an event. `missing`: what the key waits for, in words. */
  | { readonly do: 'wait'; readonly missing: string }
  /** Requeues the key after `ms` milliseconds. */
  | { readonly do: 'requeue'; readonly ms: number }
  /** Reports a problem of rank `refused`. */
  | { readonly do: 'report'; readonly problem: string }
  /** Precedes a delete whose cause was not observed. Ends the pass while the delete breaker delays the delete or holds it back. */
  | { readonly do: 'holdDeletes' }
  /** Reads one side or both at the same time. A new plan follows, unless the next step of a read is `stop`, as after a failure. */
  | { readonly do: 'read'; readonly reads: readonly Call<unknown>[] }
  | ({ readonly do: 'call' } & Call<unknown>);

/** What follows an action: the next action of the plan, a new plan, or the end of the pass. */
export type NextStep = 'continue' | 'replan' | 'stop';

/** Identifies a call, so that a call that failed or had no effect is repeated only after a pause. */
export interface CallId {
  readonly action: string;
  readonly side: Side;
  /** What the call writes or reads. Distinguishes this call from other calls with the same action and side. */
  readonly content: string;
  /** Whether the same call may follow a success at once, as with reads. */
  readonly repeatable?: boolean;
}

/** A call, and what follows its success or failure. */
export interface Call<Answer> extends CallId {
  /** Sends the call. */
  call(signal: AbortSignal): Promise<Answer>;
  /** Called instead of `onSuccess` if the object does not exist (404). If this method is absent, a 404 is a failure. */
  onNotFound?(): NextStep;
  /** Called when the call succeeded. Default `continue`. */
  onSuccess?(answer: Answer): NextStep;
  /** What follows if the call fails, or if its backoff delays it. Default `stop`. */
  readonly onFailure?: NextStep;
  /** Whether the answer shows that the cluster did not keep the written content. */
  isIneffective?(answer: Answer): boolean;
  /** Set on calls that write a change to the other cluster: `up` to the provider, `down` to the consumer. Their latency is observed. */
  readonly direction?: 'up' | 'down';
  /** Whether the call is a delete whose cause was not observed. The delete breaker counts it. */
  readonly inferred?: boolean;
}

/** A call as an action, with the type of its answer checked. */
export const call = <Answer>(spec: Call<Answer>): SyncAction => ({ do: 'call', ...spec });

/** The call that requests the service namespace of a consumer namespace. */
export const requestNamespace = (namespace: string, request: (signal: AbortSignal) => Promise<void>): SyncAction =>
  call({ action: 'requestNamespace', side: 'provider', content: namespace, call: request, onFailure: 'continue' });

/** Reads of one side or both, which may be repeated at once. */
export const readAll = <Answer>(...reads: readonly Call<Answer>[]): SyncAction => ({
  do: 'read',
  reads: reads.map((read) => ({ ...read, repeatable: true })),
});

/** One pass over one key. Collects the result of its actions. */
export class SyncPass {
  readonly key: string;
  readonly signal: AbortSignal;
  #requeueMs = Number.POSITIVE_INFINITY;
  #missing: string | undefined;
  #problem: Problem | undefined;

  constructor(key: string, signal: AbortSignal) {
    this.key = key;
    this.signal = signal;
  }

  /** Requeues the key after `ms` milliseconds. If called several times, the shortest delay counts. */
  requeueAfter(ms: number): void {
    this.#requeueMs = Math.min(this.#requeueMs, ms);
  }

  /** Marks the key as not ready until an event. Only the first `missing` is reported, and none if the key is requeued. */
  waitFor(missing: string): void {
    this.#missing ??= missing;
  }

  /** Keeps the problem if it is worse than each earlier problem of the pass. */
  addProblem(problem: Problem): void {
    if (!this.#problem || severityOf(problem) < severityOf(this.#problem)) this.#problem = problem;
  }

  /** The worst problem of the pass; undefined if there is none. */
  get problem(): Problem | undefined {
    return this.#problem;
  }

  /** Whether the pass neither requeued the key nor waits for anything. */
  get isDone(): boolean {
    return this.#requeueMs === Number.POSITIVE_INFINITY && this.#missing === undefined;
  }

  get result(): Result {
    if (this.#requeueMs !== Number.POSITIVE_INFINITY) return after(this.#requeueMs);
    return this.#missing === undefined ? done : notReady(this.#missing);
  }
}

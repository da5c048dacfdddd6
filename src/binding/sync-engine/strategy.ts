import { after, done, notReady, type Result } from '../../engine/result.ts';
import { type Problem, severityOf } from './problems.ts';
import type { Side } from './syncer.ts';

/**
 * What differs between bound and claimed objects: plans actions for the two objects of a key, which
 * the engine runs. Keys are those of the consumer's object.
 */
export interface SyncStrategy {
  readonly rules: SyncRules;
  /** What a key must wait for before it can be planned, such as a list. */
  missing(key: string): string | undefined;
  plan(pass: SyncPass): readonly SyncAction[];
  /** At the end of a pass: drops state that the key no longer needs. */
  finish(key: string): KeyState;
  /** Before the first event of each start. */
  clear(): void;
}

export interface SyncRules {
  /** False: report a 403 only if it persists, as providers grant permissions when needed. */
  readonly forbiddenAtOnce: boolean;
  /** Pause between writes that are accepted but not kept. Infinity: never the same again. */
  readonly ineffectiveCapMs: number;
  /** The problem to report once that pause exceeds 2 s. */
  readonly ineffective: Readonly<Record<Side, string>>;
}

/** At the end of a pass. */
export interface KeyState {
  /** Events are recorded on it. */
  readonly consumer: { readonly key: string; readonly uid: string } | undefined;
  readonly isDeleted: boolean;
  /** The watch does not show the last write yet. */
  readonly isAhead: boolean;
}

/** Ends without a call. Plans of both kinds contain them as they are. */
export type PassAction =
  /** Not ready until an event; `missing` in words. */
  | { readonly do: 'wait'; readonly missing: string }
  | { readonly do: 'requeue'; readonly ms: number }
  /** With rank `refused`. Why the object is not synced, and what to do. */
  | { readonly do: 'report'; readonly problem: string };

export type SyncAction =
  | PassAction
  /** Before a delete whose cause was not observed: ends the pass while the breaker holds it. */
  | { readonly do: 'holdDeletes' }
  /** At the same time; a new plan follows, unless a read fails. */
  | { readonly do: 'read'; readonly reads: readonly Call<unknown>[] }
  | ({ readonly do: 'call' } & Call<unknown>);

export type NextStep = 'continue' | 'replan' | 'stop';

/** Tells a repeat, which must wait, from another call. */
export interface CallId {
  readonly action: string;
  readonly side: Side;
  /** What the call writes or reads. */
  readonly content: string;
  /** It may follow a success at once, as reads do. */
  readonly repeatable?: boolean;
}

export interface Call<Answer> extends CallId {
  call(signal: AbortSignal): Promise<Answer>;
  /** On a 404, which is a failure without this method. */
  onNotFound?(): NextStep;
  onSuccess?(answer: Answer): NextStep;
  /** Also if its backoff delays the call. Default `stop`. */
  readonly onFailure?: NextStep;
  /** The cluster did not keep what was written. */
  isIneffective?(answer: Answer): boolean;
  /** `up` to the provider, `down` to the consumer; for the latency. */
  readonly direction?: 'up' | 'down';
  /** A delete whose cause was not observed; the breaker counts it. */
  readonly inferred?: boolean;
}

export const call = <Answer>(spec: Call<Answer>): SyncAction => ({ do: 'call', ...spec });

export const requestNamespace = (
  namespace: string,
  request: (namespace: string, signal: AbortSignal) => Promise<void>,
): SyncAction[] => [
  call({
    action: 'requestNamespace',
    side: 'provider',
    content: namespace,
    call: (signal) => request(namespace, signal),
    onFailure: 'continue',
  }),
  { do: 'wait', missing: serviceNamespaceOf(namespace) },
];

export const serviceNamespaceOf = (namespace: string): string => `the provider's namespace for ${namespace}`;

export const readAll = <Answer>(...reads: readonly Call<Answer>[]): SyncAction => ({
  do: 'read',
  reads: reads.map((read) => ({ ...read, repeatable: true })),
});

/** One pass over one key; collects the result of its actions. */
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

  /** The shortest delay counts. */
  requeueAfter(ms: number): void {
    this.#requeueMs = Math.min(this.#requeueMs, ms);
  }

  /** Only the first is reported, and none if the key is requeued. */
  waitFor(missing: string): void {
    this.#missing ??= missing;
  }

  /** The worst one stays. */
  addProblem(problem: Problem): void {
    if (!this.#problem || severityOf(problem) < severityOf(this.#problem)) this.#problem = problem;
  }

  get problem(): Problem | undefined {
    return this.#problem;
  }

  get isDone(): boolean {
    return this.#requeueMs === Number.POSITIVE_INFINITY && this.#missing === undefined;
  }

  get result(): Result {
    if (this.#requeueMs !== Number.POSITIVE_INFINITY) return after(this.#requeueMs);
    return this.#missing === undefined ? done : notReady(this.#missing);
  }
}

import type { Controller } from '../../engine/controller.ts';
import { after, done, notReady, type Result } from '../../engine/result.ts';
import { type Problem, problemRanks } from './problems.ts';

/** The cluster that an object or a call is in. */
export type Side = 'consumer' | 'provider';

/**
 * What one kind of sync adds to the engine: bound objects are one, claimed objects the other. A kind knows where both objects of a
 * key are, and plans from what is known of them; the engine carries its plans out. Keys are those of the consumer's object.
 */
export interface SyncKind {
  readonly rules: SyncRules;
  /** What has to be listed before anything can be said of the key; undefined when nothing is missing. */
  missing(key: string): string | undefined;
  /** The steps that bring the key's two objects into step, in order, from what is known now. */
  plan(pass: SyncPass): readonly SyncAction[];
  /** Called at the end of a pass: forgets what the key no longer needs, and returns what is left of it. */
  finish(key: string): KeyState;
  /** Forgets what it knows of earlier runs. */
  clear(): void;
}

export interface SyncRules {
  /** Whether a 403 is a problem at once, or only when it lasts: a provider may grant rights just after they are first needed. */
  readonly forbiddenAtOnce: boolean;
  /** Longest pause between writes that the cluster accepts and does not keep, milliseconds; Infinity: not again with this content. */
  readonly ineffectiveCapMs: number;
  /** What is wrong when a cluster accepts a write and keeps something else. */
  readonly ineffective: Readonly<Record<Side, string>>;
}

export interface KeyState {
  /** The consumer's object, which Events are about; undefined when there is none. */
  readonly consumer: { readonly key: string; readonly uid: string } | undefined;
  /** Neither side has an object of the key. */
  readonly isDeleted: boolean;
  /** A watch has yet to confirm one of our writes. */
  readonly isAhead: boolean;
}

export type SyncAction =
  | { readonly do: 'wait'; readonly missing: string }
  | { readonly do: 'requeue'; readonly ms: number }
  | { readonly do: 'report'; readonly problem: string }
  /** A deletion follows that nobody was seen to ask for: when there are many of them, this ends the plan. */
  | { readonly do: 'holdDeletes' }
  /** Reads both sides, or one of them, at the same time; a new plan follows. */
  | { readonly do: 'read'; readonly reads: readonly Call<unknown>[] }
  | ({ readonly do: 'call' } & Call<unknown>);

/** How to go on after a step. */
export type NextStep = 'continue' | 'replan' | 'stop';

/** What identifies a call: a call that failed or was in vain is repeated only after a pause. */
export interface Write {
  readonly action: string;
  readonly side: Side;
  /** Distinguishes this call from others of the same action. */
  readonly content: string;
  /** The same call may follow at once when this one succeeds, as with reads. */
  readonly repeatable?: boolean;
}

export interface Call<Answer> extends Write {
  call(signal: AbortSignal): Promise<Answer>;
  /** Called when the object is gone (404); absent: that is a failure. */
  onNotFound?(): NextStep;
  /** Called when the call succeeded. Default `go on`. */
  onSuccess?(answer: Answer): NextStep;
  /** After a failure, and while the call has to wait. Default `stop`. */
  readonly onFailure?: NextStep;
  /** Whether the answer shows that the cluster did not keep what was written. */
  isIneffective?(answer: Answer): boolean;
  /** The change is in the other cluster: its latency counts. */
  readonly direction?: 'up' | 'down';
  /** A deletion that `holdBack` let pass. */
  readonly inferred?: boolean;
}

/** A call as a step, with the type of its answer checked. */
export const call = <Answer>(call: Call<Answer>): SyncAction => ({ do: 'call', ...call });

/** Asks for the provider's namespace of a namespace here. */
export const requestNamespace = (namespace: string, request: (signal: AbortSignal) => Promise<void>): SyncAction =>
  call({ action: 'requestNamespace', side: 'provider', content: namespace, call: request, onFailure: 'continue' });

export const readAll = <Answer>(...reads: readonly Call<Answer>[]): SyncAction => ({
  do: 'read',
  reads: reads.map((read) => ({ ...read, repeatable: true })),
});

/** One reconcile of one key: what it came to, gathered from its steps. */
export class SyncPass {
  readonly key: string;
  readonly signal: AbortSignal;
  #laterMs = Number.POSITIVE_INFINITY;
  #missing: string | undefined;
  #problem: Problem | undefined;

  constructor(key: string, signal: AbortSignal) {
    this.key = key;
    this.signal = signal;
  }

  /** Come back then, or earlier. */
  requeueAfter(ms: number): void {
    this.#laterMs = Math.min(this.#laterMs, ms);
  }

  waitFor(missing: string): void {
    this.#missing ??= missing;
  }

  addProblem(problem: Problem): void {
    const rank = ({ rank }: Problem): number => problemRanks.indexOf(rank);
    if (!this.#problem || rank(problem) < rank(this.#problem)) this.#problem = problem;
  }

  /** The worst one. */
  get problem(): Problem | undefined {
    return this.#problem;
  }

  /** Nothing is left to do until something changes. */
  get isDone(): boolean {
    return this.#laterMs === Number.POSITIVE_INFINITY && this.#missing === undefined;
  }

  get result(): Result {
    if (this.#laterMs !== Number.POSITIVE_INFINITY) return after(this.#laterMs);
    return this.#missing === undefined ? done : notReady(this.#missing);
  }
}

/** `sync`: both ways. `drain`: the binding goes, and copies with it. */
export type SyncMode = 'sync' | 'drain';

/** What keeps the objects of one bound kind in step between the consumer and one provider. */
export interface Syncer {
  readonly controllers: readonly Controller[];
  /** Looks at every object again, and tries again what did not work so far. */
  resync(): void;
  /** Lets the deletes go through that are held back because they were too many at once. */
  allowDeletes(): void;
  /**
   * How many consumer objects still carry our finalizer, and while the binding is drained how many copies are left. Infinity while that is
   * not known.
   */
  remaining(): number;
  /** What is wrong with single objects, worst first, for the binding's condition; empty when all is well. */
  problems(): readonly string[];
  /** Whether the API server of the consumer serves the kind: it has listed its objects. */
  served(): boolean;
  /** Ends its watches; its controllers have been removed before. */
  close(): void;
}

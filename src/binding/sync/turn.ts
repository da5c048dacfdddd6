import { after, done, notReady, type Result } from '../../engine/result.ts';
import type { Problem } from './problems.ts';
import { problemRanks } from './problems.ts';

/** One reconcile of one key: what it came to, gathered from its steps. */
export class Turn {
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
  later(ms: number): void {
    this.#laterMs = Math.min(this.#laterMs, ms);
  }

  wait(missing: string): void {
    this.#missing ??= missing;
  }

  complain(problem: Problem): void {
    const rank = ({ rank }: Problem): number => problemRanks.indexOf(rank);
    if (!this.#problem || rank(problem) < rank(this.#problem)) this.#problem = problem;
  }

  /** The worst one. */
  get problem(): Problem | undefined {
    return this.#problem;
  }

  /** Nothing is left to do until something changes. */
  get isSettled(): boolean {
    return this.#laterMs === Number.POSITIVE_INFINITY && this.#missing === undefined;
  }

  get result(): Result {
    if (this.#laterMs !== Number.POSITIVE_INFINITY) return after(this.#laterMs);
    return this.#missing === undefined ? done : notReady(this.#missing);
  }
}

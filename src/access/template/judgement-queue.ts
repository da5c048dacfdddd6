import type { Cancel, Clock } from '../../kit/clock.ts';
import type { PlanQueue } from '../builders/plan-budget.ts';
import { notPlanned } from '../policy/template-policy.ts';
import type { PlanRunner } from './template-plans.ts';

/** Maximum share of one processor for judging templates. */
const share = 0.1;
/** Processor time that judging may take at once after a quiet time, milliseconds: about 200 usual templates, or the largest plan. */
const burstMs = 250;
/** Minimum processor time that must be left to run a new judgement before the waiting ones, milliseconds. The rest is for those. */
const minLeftToOvertakeMs = burstMs / 2;
/** Minimum interval between two calls, milliseconds. */
const paceMs = 10;
/** How long the queue waits for a called judgement before it calls the next, milliseconds. */
const maxCallMs = 1000;

/** Owner of judgements: the judge of one kind. */
interface Owner {
  readonly id: string;
  /** Called when the owner must call `judge` with this key. */
  call(key: string): void;
}

/** A judgement that waits: the key of a template, and who judges it. */
interface Entry {
  readonly owner: Owner;
  readonly key: string;
}

/**
 * Runs judgements (see `TemplateJudge`) in at most a tenth of the processor time: any user who writes a template or a label selector causes
 * judgements, and the server needs the rest for requests. While the share is used up, judgements wait, each once, first in, first out. The
 * queue calls one at a time, at most a hundred a second. A called judgement runs all its plans, whatever they cost, so judgements of other
 * templates cannot delay it again; the next call waits until processor time is left again.
 */
export class JudgementQueue {
  readonly #plans: PlanQueue;
  readonly #clock: Clock;
  /** Processor time that is left, milliseconds; negative after a plan that took more. */
  #leftMs = burstMs;
  #refilledMs: number;
  /** By owner and key. Oldest first. */
  readonly #waiting = new Map<string, Entry>();
  #called: string | undefined;
  #calledMs = Number.NEGATIVE_INFINITY;
  #cancel: Cancel = () => undefined;

  constructor(plans: PlanQueue, clock: Clock) {
    this.#plans = plans;
    this.#clock = clock;
    this.#refilledMs = clock.monotonic();
  }

  /** Resolves or rejects as `plan` does, which runs its plans with the runner. If the result is `notPlanned`, the judgement waits. */
  async judge<Result>(
    owner: Owner,
    key: string,
    plan: (runner: PlanRunner) => Promise<Result | typeof notPlanned>,
  ): Promise<Result | typeof notPlanned> {
    const id = idOf(owner, key);
    const isCalled = this.#called === id;
    let mayRun = isCalled;
    const run = <Planned>(step: () => Planned): Promise<Planned | typeof notPlanned> =>
      this.#plans.run(() => {
        mayRun ||= this.#mayStart();
        if (!mayRun) return notPlanned;
        const startedMs = this.#clock.monotonic();
        try {
          return step();
        } finally {
          this.#leftMs -= this.#clock.monotonic() - startedMs;
        }
      });
    try {
      const result = await plan({ run });
      if (result === notPlanned) this.add(owner, key);
      return result;
    } finally {
      if (isCalled && this.#called === id) this.#called = undefined;
      this.#schedule();
    }
  }

  /** Adds a judgement to those that wait, unless it waits already. */
  add(owner: Owner, key: string): void {
    const id = idOf(owner, key);
    if (!this.#waiting.has(id)) this.#waiting.set(id, { owner, key });
    this.#schedule();
  }

  /** Removes a judgement that is not needed anymore. */
  remove(owner: Owner, key: string): void {
    const id = idOf(owner, key);
    this.#waiting.delete(id);
    if (this.#called === id) this.#called = undefined;
    this.#schedule();
  }

  /** Removes all judgements of the owner. */
  removeAll(owner: Owner): void {
    for (const entry of [...this.#waiting.values()]) {
      if (entry.owner === owner) this.#waiting.delete(idOf(owner, entry.key));
    }
    if (this.#called?.startsWith(idOf(owner, ''))) this.#called = undefined;
    this.#schedule();
  }

  #mayStart(): boolean {
    this.#refill();
    return this.#leftMs > (this.#waiting.size > 0 ? minLeftToOvertakeMs : 0);
  }

  #refill(): void {
    const nowMs = this.#clock.monotonic();
    this.#leftMs = Math.min(burstMs, this.#leftMs + share * (nowMs - this.#refilledMs));
    this.#refilledMs = nowMs;
  }

  #schedule(): void {
    this.#cancel();
    if (this.#waiting.size === 0) return;
    this.#cancel = this.#clock.schedule(this.#delayMs(), () => this.#callNext());
  }

  #callNext(): void {
    const [first] = this.#waiting;
    if (first && this.#delayMs() === 0) {
      const [id, { owner, key }] = first;
      this.#waiting.delete(id);
      this.#called = id;
      this.#calledMs = this.#clock.monotonic();
      owner.call(key);
    }
    this.#schedule();
  }

  /** How long until the next call, milliseconds. */
  #delayMs(): number {
    this.#refill();
    const sinceCallMs = this.#clock.monotonic() - this.#calledMs;
    const shareMs = this.#leftMs > 0 ? 0 : Math.ceil((1 - this.#leftMs) / share);
    return Math.max(0, (this.#called === undefined ? paceMs : maxCallMs) - sinceCallMs, shareMs);
  }
}

const idOf = ({ id }: Owner, key: string): string => `${id} ${key}`;

import type { Cancel, Clock } from '../../kit/clock.ts';
import type { PlanQueue } from '../builders/plan-budget.ts';
import { notPlanned } from '../policy/template-policy.ts';
import type { PlanRunner } from './template-plans.ts';

/** Of one processor. */
const share = 0.1;
/** Processor time at once after a quiet time: about 200 usual templates, or the largest plan. */
const burstMs = 250;
/** Processor time that a new judgement leaves to the waiting ones. */
const minLeftToOvertakeMs = burstMs / 2;
/** Between two calls. */
const paceMs = 10;
/** The next call waits at most this long for the judgement that was called. */
const maxCallMs = 1000;

/** The judge of one kind. */
interface Owner {
  readonly id: string;
  /** The owner must then call `judge` with this key. */
  call(key: string): void;
}

interface Entry {
  readonly owner: Owner;
  readonly key: string;
}

/**
 * Runs judgements (see `TemplateJudge`) in a tenth of the processor time: any user who writes a
 * template or a selector causes them, and requests need the rest. The others wait, each once, and
 * are called one by one. A called one runs all its plans.
 */
export class JudgementQueue {
  readonly #plans: PlanQueue;
  readonly #clock: Clock;
  /** Processor time, milliseconds; negative after a plan that took more. */
  #leftMs = burstMs;
  #refilledMs: number;
  /** By owner and key, oldest first. */
  readonly #waiting = new Map<string, Entry>();
  #called: string | undefined;
  #calledMs = Number.NEGATIVE_INFINITY;
  #cancel: Cancel = () => undefined;

  constructor(plans: PlanQueue, clock: Clock) {
    this.#plans = plans;
    this.#clock = clock;
    this.#refilledMs = clock.monotonic();
  }

  /** `plan` uses the runner. If its result is `notPlanned`, the judgement waits. */
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

  add(owner: Owner, key: string): void {
    const id = idOf(owner, key);
    if (!this.#waiting.has(id)) this.#waiting.set(id, { owner, key });
    this.#schedule();
  }

  remove(owner: Owner, key: string): void {
    const id = idOf(owner, key);
    this.#waiting.delete(id);
    if (this.#called === id) this.#called = undefined;
    this.#schedule();
  }

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

  /** Until the next call. */
  #delayMs(): number {
    this.#refill();
    const sinceCallMs = this.#clock.monotonic() - this.#calledMs;
    const shareMs = this.#leftMs > 0 ? 0 : Math.ceil((1 - this.#leftMs) / share);
    return Math.max(0, (this.#called === undefined ? paceMs : maxCallMs) - sinceCallMs, shareMs);
  }
}

const idOf = ({ id }: Owner, key: string): string => `${id} ${key}`;

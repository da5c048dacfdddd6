import { notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { isObjectNotFound } from '../../kube/errors.ts';
import { answerTrustMs } from '../../kube/write-through-cache.ts';
import type { Latency, SyncObserver } from '../metrics.ts';
import type { DeleteBreaker } from './delete-breaker.ts';
import { type Call, type Outcome, type Settled, type Step, type SyncKind, Turn } from './kind.ts';
import type { Writer } from './writer.ts';

export interface SyncReconcilerOptions {
  readonly kind: SyncKind;
  readonly writer: Writer;
  readonly breaker: DeleteBreaker;
  readonly observer: SyncObserver;
  readonly latency: { readonly up: Latency; readonly down: Latency };
  /** Told after each turn what is wrong with the key's objects; nothing is when `turn.problem` is undefined. */
  readonly report: (turn: Turn, consumer: Settled['consumer']) => void;
  readonly clock: Clock;
}

/** More than any way through takes; beyond it two answers contradict each other and only time helps. */
const MAX_PLANS = 6;
const AGAIN_MS = 100;

/** Brings the two objects of a key into step: has the kind plan from what is known, and makes the calls in the order of the plan. */
export class SyncReconciler implements Reconciler {
  readonly #options: SyncReconcilerOptions;

  constructor(options: SyncReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { kind, breaker } = this.#options;
    const turn = new Turn(key, signal);
    for (let plans = 0; ; plans++) {
      const missing = kind.missing(key);
      if (missing !== undefined) return notReady(missing);
      if (plans === MAX_PLANS) {
        turn.later(AGAIN_MS);
        break;
      }
      const steps = kind.plan(turn);
      if (await this.#carryOut(turn, steps)) continue;
      if (!steps.some(({ do: verb }) => verb === 'holdBack' || verb === 'look')) breaker.dropped(key);
      break;
    }
    return this.#settle(turn);
  }

  /** True when a new plan is due: after the answer of a call the rest of the old one may be wrong. */
  async #carryOut(turn: Turn, steps: readonly Step[]): Promise<boolean> {
    for (const step of steps) {
      const outcome = await this.#act(turn, step);
      if (outcome !== 'go on') return outcome === 'plan again';
    }
    return false;
  }

  #act(turn: Turn, step: Step): Outcome | Promise<Outcome> {
    switch (step.do) {
      case 'wait':
        turn.wait(step.missing);
        return 'go on';
      case 'later':
        turn.later(step.ms);
        return 'go on';
      case 'complain':
        turn.complain({ rank: 'refused', message: step.problem });
        return 'go on';
      case 'holdBack':
        return this.#holdBack(turn);
      case 'look':
        return this.#look(turn, step.reads);
      case 'call':
        return this.#call(turn, step);
    }
  }

  #holdBack(turn: Turn): Outcome {
    const { breaker, clock } = this.#options;
    const waitMs = breaker.ask(turn.key, clock.monotonic());
    if (waitMs === 0) return 'go on';
    if (waitMs === Number.POSITIVE_INFINITY) turn.wait('a decision about many copies without an original');
    else turn.later(waitMs);
    return 'stop';
  }

  async #look(turn: Turn, reads: readonly Call<unknown>[]): Promise<Outcome> {
    const outcomes = await Promise.all(reads.map((read) => this.#call(turn, read)));
    return outcomes.includes('stop') ? 'stop' : 'plan again';
  }

  async #call(turn: Turn, step: Call<unknown>): Promise<Outcome> {
    const { breaker, clock, writer } = this.#options;
    let answer: unknown;
    let whenGone: Outcome | undefined;
    const succeeded = await writer.try(turn, step, async () => {
      try {
        answer = await step.call(turn.signal);
      } catch (error) {
        if (!step.onGone || !isObjectNotFound(error)) throw error;
        whenGone = step.onGone();
      }
    });
    if (!succeeded) return step.onFailure ?? 'stop';
    if (whenGone) return whenGone;
    if (step.carries) this.#count(turn.key, step.carries);
    if (step.inferred) breaker.deleted(turn.key, clock.monotonic());
    if (step.isFutile?.(answer)) writer.futile(turn, step);
    return step.onSuccess?.(answer) ?? 'go on';
  }

  #count(key: string, direction: 'up' | 'down'): void {
    const { latency, observer } = this.#options;
    const seconds = latency[direction].take(key);
    if (seconds !== undefined) observer[direction](seconds);
  }

  #settle(turn: Turn): Result {
    const { kind, latency, report, writer } = this.#options;
    const { consumer, isGone, isAhead } = kind.settle(turn.key);
    report(turn, consumer);
    if (turn.isSettled) {
      latency.up.take(turn.key);
      latency.down.take(turn.key);
      if (isGone) writer.forget(turn.key);
    }
    // The watch will show it and bring the key back; if it does not, what was believed is looked at again.
    if (isAhead) turn.later(answerTrustMs);
    return turn.result;
  }
}

import { allowDeletesAnnotation } from '../../api/binding/names.ts';
import { notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { isObjectNotFound } from '../../kube/errors.ts';
import { answerTrustMs } from '../../kube/write-through-cache.ts';
import type { Latency, SyncObserver } from '../metrics.ts';
import type { CallSender } from './call-sender.ts';
import type { DeleteBreaker } from './delete-breaker.ts';
import { type Call, type KeyState, type NextStep, type SyncAction, SyncPass, type SyncStrategy } from './strategy.ts';

export interface SyncReconcilerOptions {
  readonly strategy: SyncStrategy;
  readonly sender: CallSender;
  readonly breaker: DeleteBreaker;
  readonly observer: SyncObserver;
  readonly latency: { readonly up: Latency; readonly down: Latency };
  /** Called after each pass, unless `strategy.missing` names something. */
  readonly report: (pass: SyncPass, consumer: KeyState['consumer']) => void;
  readonly clock: Clock;
}

/** More than any sequence of actions needs. */
const MAX_PLANS = 6;
const TOO_MANY_PLANS_MS = 100;

export class SyncReconciler implements Reconciler {
  readonly #options: SyncReconcilerOptions;

  constructor(options: SyncReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { strategy, breaker } = this.#options;
    const pass = new SyncPass(key, signal);
    for (let plans = 0; ; plans++) {
      const missing = strategy.missing(key);
      if (missing !== undefined) return notReady(missing);
      if (plans === MAX_PLANS) {
        pass.requeueAfter(TOO_MANY_PLANS_MS);
        break;
      }
      const actions = strategy.plan(pass);
      if (await this.#runActions(pass, actions)) continue;
      // No delete is left in the plan. A `read` does not count: a new plan follows it.
      if (!actions.some(({ do: verb }) => verb === 'holdDeletes' || verb === 'read')) breaker.withdraw(key);
      break;
    }
    return this.#finish(pass);
  }

  async #runActions(pass: SyncPass, actions: readonly SyncAction[]): Promise<boolean> {
    for (const action of actions) {
      const outcome = await this.#run(pass, action);
      if (outcome !== 'continue') return outcome === 'replan';
    }
    return false;
  }

  #run(pass: SyncPass, action: SyncAction): NextStep | Promise<NextStep> {
    switch (action.do) {
      case 'wait':
        pass.waitFor(action.missing);
        return 'continue';
      case 'requeue':
        pass.requeueAfter(action.ms);
        return 'continue';
      case 'report':
        pass.addProblem({ rank: 'refused', message: action.problem });
        return 'continue';
      case 'holdDeletes':
        return this.#holdDeletes(pass);
      case 'read':
        return this.#read(pass, action.reads);
      case 'call':
        return this.#call(pass, action);
    }
  }

  /** `stop` while the breaker delays the delete or holds it back. */
  #holdDeletes(pass: SyncPass): NextStep {
    const { breaker, clock } = this.#options;
    const waitMs = breaker.request(pass.key, clock.monotonic());
    if (waitMs === 0) return 'continue';
    if (waitMs === Number.POSITIVE_INFINITY) pass.waitFor(`the annotation ${allowDeletesAnnotation} of the binding`);
    else pass.requeueAfter(waitMs);
    return 'stop';
  }

  async #read(pass: SyncPass, reads: readonly Call<unknown>[]): Promise<NextStep> {
    const outcomes = await Promise.all(reads.map((read) => this.#call(pass, read)));
    return outcomes.includes('stop') ? 'stop' : 'replan';
  }

  async #call(pass: SyncPass, call: Call<unknown>): Promise<NextStep> {
    const { breaker, clock, sender } = this.#options;
    let answer: unknown;
    let stepIfNotFound: NextStep | undefined;
    const succeeded = await sender.send(pass, call, async () => {
      try {
        answer = await call.call(pass.signal);
      } catch (error) {
        if (!call.onNotFound || !isObjectNotFound(error)) throw error;
        stepIfNotFound = call.onNotFound();
      }
    });
    if (!succeeded) return call.onFailure ?? 'stop';
    if (stepIfNotFound) return stepIfNotFound;
    if (call.direction) this.#observeLatency(pass.key, call.direction);
    if (call.inferred) breaker.recordDeleted(pass.key, clock.monotonic());
    if (call.isIneffective?.(answer)) sender.recordIneffective(pass, call);
    return call.onSuccess?.(answer) ?? 'continue';
  }

  #observeLatency(key: string, direction: 'up' | 'down'): void {
    const { latency, observer } = this.#options;
    const seconds = latency[direction].stop(key);
    if (seconds !== undefined) observer[direction](seconds);
  }

  #finish(pass: SyncPass): Result {
    const { latency, report, sender, strategy } = this.#options;
    const { consumer, isDeleted, isAhead } = strategy.finish(pass.key);
    report(pass, consumer);
    if (pass.isDone) {
      latency.up.stop(pass.key);
      latency.down.stop(pass.key);
      if (isDeleted) sender.forget(pass.key);
    }
    // Normally the event of the write enqueues the key; this is a fallback.
    if (isAhead) pass.requeueAfter(answerTrustMs);
    return pass.result;
  }
}

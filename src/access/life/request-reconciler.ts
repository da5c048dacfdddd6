import { at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import type { AccessKind } from '../access-kind.ts';
import type { RequestView } from '../stores/views.ts';
import type { Decider } from './decider.ts';
import { GrantDeadlines } from './grant-deadline.ts';
import type { Granter } from './granter.ts';
import { isDenied } from './request-status.ts';
import type { Revoker } from './revoker.ts';
import type { Ending } from './trail.ts';

/** Expiries and revocations overtake everything else in the queue. */
export const revocationLane = 0;
export const normalLane = 1;

/**
 * The life of a request, one key at a time: end it if it is over, else decide it, else bring its grant about.
 * The end comes first and depends on nothing but the grant, so that no other state can keep access open.
 */
export class RequestReconciler implements Reconciler {
  readonly #kind: AccessKind;
  readonly #deadlines: GrantDeadlines;
  readonly #decider: Decider;
  readonly #granter: Granter;
  readonly #revoker: Revoker;
  /** uid by key, to let go of what this process remembers once the request is gone. */
  readonly #uids = new Map<string, string>();

  constructor(deps: { kind: AccessKind; clock: Clock; decider: Decider; granter: Granter; revoker: Revoker }) {
    this.#kind = deps.kind;
    this.#deadlines = new GrantDeadlines(deps.clock);
    this.#decider = deps.decider;
    this.#granter = deps.granter;
    this.#revoker = deps.revoker;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const request = this.#kind.requests.get(key);
    const before = this.#uids.get(key);
    if (before !== undefined && before !== request?.uid) this.#forget(key, before);
    if (!request) return done;
    this.#uids.set(key, request.uid);

    const ending = await this.#ending(request, signal);
    if (ending) return this.#revoker.end(request, ending, signal);
    if (isDenied(request)) return this.#untilOver(request);
    if (request.grant) return this.#sooner(request, await this.#granter.bringAbout(request, undefined, signal));

    const decision = await this.#decider.decide(request, signal);
    if (decision.kind === 'granted') {
      return this.#sooner(decision.request, await this.#granter.bringAbout(decision.request, decision.plan, signal));
    }
    return this.#untilOver(request);
  }

  async #ending(request: RequestView, signal: AbortSignal): Promise<Ending | undefined> {
    if (this.#deadlines.isOver(request.uid, request.createdAtMs, this.#decider.endOf(request))) return 'Expired';
    if (request.deleting) return 'Deleted';
    return request.grant ? this.#revoker.lostItsGround(request, request.grant, signal) : undefined;
  }

  #untilOver(request: RequestView): Result {
    return at(this.#deadlines.nextLook(request.uid, request.createdAtMs, this.#decider.endOf(request)), revocationLane);
  }

  /** The granter's own wish for a next look, unless the end comes first. */
  #sooner(request: RequestView, lookAgainMs: number | undefined): Result {
    const end = this.#untilOver(request);
    return lookAgainMs !== undefined && end.kind === 'at' && lookAgainMs < end.atMs ? at(lookAgainMs, normalLane) : end;
  }

  #forget(key: string, uid: string): void {
    this.#uids.delete(key);
    this.#deadlines.forget(uid);
    this.#granter.forget(uid);
    this.#revoker.forget(uid);
  }
}

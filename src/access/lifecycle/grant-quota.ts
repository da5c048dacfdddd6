import type { Grant } from '../../api/access/grant.ts';
import { keyOf } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { type Account, type Limits, type LimitUse, limitViolation } from '../policy/limits.ts';
import type { Violation } from '../policy/policy.ts';
import { type AccessStores, byNamespace, byRequest, byTemplate, byUser } from '../stores/access-stores.ts';
import type { RequestView } from '../stores/access-views.ts';
import { isDenied } from './request-status.ts';

/** A grant that counts against the limits. */
interface Reservation {
  readonly requestUid: string;
  readonly user: string;
  readonly namespace: string;
  readonly templateUid: string;
  readonly expiresAt: string;
}

type Stores = Pick<AccessStores, 'requests' | 'roleBindings'>;

/**
 * Counts open grants of every kind against the limits: those in the stores, and those that this process reserved and the stores do not
 * show yet. `reserve` counts and records in one synchronous call, so two concurrent requests cannot take the same place.
 */
export class GrantQuota {
  readonly #deps: { readonly stores: Stores; readonly limits: Limits; readonly clock: Clock };
  /** By request uid. */
  readonly #reserved = new Map<string, { readonly place: Reservation; readonly request: RequestView }>();

  constructor(deps: { stores: Stores; limits: Limits; clock: Clock }) {
    this.#deps = deps;
  }

  /** Every limit that applies to the account. The request with uid `except` does not count. */
  uses({ user, namespace, template }: Account, except = ''): LimitUse[] {
    const templateKey = keyOf({ namespace, name: template.name });
    const scopes = [
      {
        scope: 'user',
        name: user,
        limit: this.#deps.limits.perUser,
        found: () => this.#stored(byUser, user),
        counts: (place: Reservation) => place.user === user,
      },
      {
        scope: 'template',
        name: template.name,
        limit: template.maxGrants ?? 0,
        found: () => this.#stored(byTemplate, templateKey),
        counts: (place: Reservation) => place.templateUid === template.uid,
      },
      {
        scope: 'namespace',
        name: namespace,
        limit: this.#deps.limits.perNamespace,
        found: () => this.#stored(byNamespace, namespace),
        counts: (place: Reservation) => place.namespace === namespace,
      },
    ] as const;
    return scopes
      .filter(({ limit }) => limit > 0)
      .map(({ scope, name, limit, found, counts }) => {
        const places = new Map([...this.#unobserved(), ...found()].map((place) => [place.requestUid, place]));
        places.delete(except);
        const ends = [...places.values()]
          .filter(counts)
          .map(({ expiresAt }) => expiresAt)
          .sort();
        const freeAt = ends[ends.length - limit];
        return { scope, name, limit, open: ends.length, ...(freeAt === undefined ? {} : { freeAt }) };
      });
  }

  /**
   * Reserves a place for `grant` until its request ends; returns `LimitReached` if a limit is used up. A repeated call for the same
   * request counts once.
   */
  reserve(request: RequestView, grant: Grant, maxGrants: number | undefined): Violation | undefined {
    const place = reservationOf(request, grant);
    const template = { uid: grant.template.uid, name: grant.template.name, maxGrants };
    const uses = this.uses({ ...place, template }, request.uid);
    const full = limitViolation(uses);
    // Without limits, `uses` never reads the reservations, so nothing would remove them.
    if (!full && uses.length > 0) this.#reserved.set(request.uid, { place, request });
    return full;
  }

  #stored(index: string, value: string): Reservation[] {
    return this.#deps.stores.requests
      .flatMap((store) => store.byIndex(index, value))
      .flatMap((request) =>
        request.grant && this.#countsAsOpen(request, request.grant) ? [reservationOf(request, request.grant)] : [],
      );
  }

  /** A grant that is ending counts until its RoleBinding is deleted. */
  #countsAsOpen(request: RequestView, grant: Grant): boolean {
    const isOver = (parseTime(grant.expiresAt) ?? 0) <= this.#deps.clock.now();
    if (!isOver && !request.deleting && !request.revoked && !isDenied(request)) return true;
    return this.#deps.stores.roleBindings.byIndex(byRequest, request.uid).length > 0;
  }

  /** Reservations that the stores do not show yet. One ends when its request shows a decision or is deleted. */
  #unobserved(): Reservation[] {
    for (const [uid, { request }] of this.#reserved) {
      const stored = this.#find(request);
      if (!stored || stored.grant || isDenied(stored)) this.#reserved.delete(uid);
    }
    return [...this.#reserved.values()].map(({ place }) => place);
  }

  #find({ key, uid }: RequestView): RequestView | undefined {
    return this.#deps.stores.requests.map((store) => store.get(key)).find((request) => request?.uid === uid);
  }
}

const reservationOf = ({ uid, namespace, spec }: RequestView, { template, expiresAt }: Grant): Reservation => ({
  requestUid: uid,
  user: spec.requester?.username ?? '',
  namespace,
  templateUid: template.uid,
  expiresAt,
});

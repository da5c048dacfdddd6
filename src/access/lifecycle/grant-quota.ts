import type { Grant } from '../../api/access/grant.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import { keyOf } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { chooseExtension } from '../policy/extension-choice.ts';
import { type Account, type Limits, type LimitUse, limitViolation } from '../policy/limits.ts';
import type { Violation } from '../policy/policy.ts';
import { type AccessStores, byNamespace, byRequest, byTemplate, byUser } from '../stores/access-stores.ts';
import { accessEndMs, type RequestView } from '../stores/access-views.ts';
import { extendableOf } from './request-ends.ts';

interface CountedGrant {
  readonly requestUid: string;
  readonly user: string;
  readonly namespace: string;
  readonly templateUid: string;
  readonly expiresAt: string;
  readonly canExtend: () => boolean;
}

type Stores = Pick<AccessStores, 'requests' | 'roleBindings' | 'pods' | 'of'>;

interface GrantQuotaDeps {
  readonly stores: Stores;
  readonly limits: Limits;
  readonly clock: Clock;
}

/**
 * Counts open grants of all kinds: those in the stores, and reservations that the stores do not
 * show yet. `reserve` is synchronous, so concurrent requests cannot exceed a limit.
 */
export class GrantQuota {
  readonly #deps: GrantQuotaDeps;
  /** By request uid. */
  readonly #reserved = new Map<string, { readonly reservation: CountedGrant; readonly request: RequestView }>();

  constructor(deps: GrantQuotaDeps) {
    this.#deps = deps;
  }

  /** Whether a limit can deny a grant, now or later. */
  mayDeny(maxGrants = 0): boolean {
    const { perUser, perNamespace } = this.#deps.limits;
    return [perUser, perNamespace, maxGrants].some((limit) => limit > 0);
  }

  /** Every limit above 0 that applies to the account, without the request `exceptUid`. */
  uses({ user, namespace, template }: Account, exceptUid = ''): LimitUse[] {
    const templateKey = keyOf({ namespace, name: template.name });
    const scopes = [
      {
        scope: 'user',
        name: user,
        limit: this.#deps.limits.perUser,
        stored: () => this.#stored(byUser, user),
        isInScope: (grant: CountedGrant) => grant.user === user,
      },
      {
        scope: 'template',
        name: template.name,
        limit: template.maxGrants ?? 0,
        stored: () => this.#stored(byTemplate, templateKey),
        isInScope: (grant: CountedGrant) => grant.templateUid === template.uid,
      },
      {
        scope: 'namespace',
        name: namespace,
        limit: this.#deps.limits.perNamespace,
        stored: () => this.#stored(byNamespace, namespace),
        isInScope: (grant: CountedGrant) => grant.namespace === namespace,
      },
    ] as const;
    return scopes
      .filter(({ limit }) => limit > 0)
      .map(({ scope, name, limit, stored, isInScope }) => {
        const counted = new Map([...this.#unobserved(), ...stored()].map((grant) => [grant.requestUid, grant]));
        counted.delete(exceptUid);
        const grants = [...counted.values()]
          .filter(isInScope)
          .sort((a, b) => (a.expiresAt < b.expiresAt ? -1 : Number(a.expiresAt > b.expiresAt)));
        const mustExpire = grants.slice(0, Math.max(0, grants.length - limit + 1));
        const freeAt = mustExpire.at(-1)?.expiresAt;
        const free = freeAt === undefined ? {} : { freeAt, canMove: mustExpire.some(({ canExtend }) => canExtend()) };
        return { scope, name, limit, open: grants.length, ...free };
      });
  }

  /** Until the stores show the grant, or the request as denied or deleted. */
  reserve(request: RequestView, grant: Grant, maxGrants: number | undefined): Violation | undefined {
    const reservation = this.#counted({ ...request, grant }, grant, grant.expiresAt);
    const template = { uid: grant.template.uid, name: grant.template.name, maxGrants };
    const uses = this.uses({ ...reservation, template }, request.uid);
    const violation = limitViolation(uses);
    // Without limits, `uses` never reads the reservations, so nothing would remove them.
    if (!violation && uses.length > 0) this.#reserved.set(request.uid, { reservation, request });
    return violation;
  }

  #stored(index: string, value: string): CountedGrant[] {
    return this.#deps.stores.requests
      .flatMap((store) => store.byIndex(index, value))
      .flatMap((request) =>
        request.grant && this.#countsAsOpen(request)
          ? [this.#counted(request, request.grant, formatTime(accessEndMs(request) ?? 0))]
          : [],
      );
  }

  #counted(request: RequestView, { template }: Grant, expiresAt: string): CountedGrant {
    const { uid, namespace, spec } = request;
    return {
      requestUid: uid,
      user: spec.requester?.username ?? '',
      namespace,
      templateUid: template.uid,
      expiresAt,
      canExtend: () => this.#canExtend(request, template),
    };
  }

  #canExtend(request: RequestView, { kind, name }: Grant['template']): boolean {
    const { stores } = this.#deps;
    const access = extendableOf(request, stores.pods);
    if (!access || request.deleting || request.revoked || request.ended) return false;
    const { templates } = stores.of(accessOfTemplate(kind).request.resource.kind);
    const template = templates.get(keyOf({ namespace: request.namespace, name }));
    return !('code' in chooseExtension({ by: '1s' }, template?.spec.accessConfig.extension, access));
  }

  /** A grant that is ending counts until its RoleBinding is deleted. */
  #countsAsOpen(request: RequestView): boolean {
    const hasExpired = (accessEndMs(request) ?? 0) <= this.#deps.clock.now();
    if (!hasExpired && !request.deleting && !request.revoked && !request.ended) return true;
    return this.#deps.stores.roleBindings.byIndex(byRequest, request.uid).length > 0;
  }

  /** Removes reservations whose request is decided or deleted. */
  #unobserved(): CountedGrant[] {
    for (const [uid, { request }] of this.#reserved) {
      const stored = this.#storedRequest(request);
      if (!stored || stored.grant || stored.ended) this.#reserved.delete(uid);
    }
    return [...this.#reserved.values()].map(({ reservation }) => reservation);
  }

  #storedRequest({ key, uid }: RequestView): RequestView | undefined {
    return this.#deps.stores.requests.map((store) => store.get(key)).find((request) => request?.uid === uid);
  }
}

import type { Ended } from '../../api/access/ended.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { keyOf } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { AccessKind } from '../access-kind.ts';
import type { Signer } from '../signing/signer.ts';
import { byNamespace, byUser } from '../stores/access-stores.ts';
import type { RequestView } from '../stores/access-views.ts';
import { accessEndMs } from './request-ends.ts';
import { retainedUntilMs } from './retention.ts';

/** How long an ended request with a generated name stays if its template has no `historyTTL`, milliseconds. */
const defaultTtlMs = 24 * 3_600_000;
/** Maximum of `historyTTL`, as in the CRD, milliseconds. */
const maxTtlMs = 168 * 3_600_000;
/** Maximum number of ended requests of one kind that stay for one requester in a namespace. Above it, the server deletes the oldest. */
const maxPerRequester = 50;
/** Maximum number of ended requests of one kind that stay in a namespace. Above it, the server deletes the oldest. */
const maxPerNamespace = 1000;

interface HistoryDeps {
  readonly kind: AccessKind;
  readonly signer: Signer;
  readonly clock: Clock;
}

/** Decides how long requests stay after their end, so that people can read how they ended. */
export class History {
  readonly #deps: HistoryDeps;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
  }

  /**
   * `status.ended`, signed, for a request that ends at `atMs` (epoch ms). It fixes when the server deletes the request (`until`), so that
   * later edits of the template do not change that. A denied request stays at least until its grant would have ended or, without a grant,
   * until `retainedUntilMs`. Throws `SigningKeyUnavailable`.
   */
  end(request: RequestView, end: Pick<Ended, 'how' | 'reason' | 'by'>, atMs: number): Ended {
    const { kind, signer } = this.#deps;
    const template = keyOf({ namespace: request.namespace, name: request.spec.templateName });
    const config = kind.templates.get(template)?.spec.accessConfig;
    const keptUntilMs = atMs + ttlMs(request, config);
    const denialUntilMs =
      end.how === 'Denied' ? (accessEndMs(request, signer) ?? retainedUntilMs(request, config, atMs)) : keptUntilMs;
    return signer.signEnd(request, {
      at: formatTime(atMs),
      how: end.how,
      reason: end.reason,
      ...(end.by === undefined ? {} : { by: end.by }),
      until: formatTime(Math.max(keptUntilMs, denialUntilMs)),
    });
  }

  /**
   * The oldest ended requests in the store that exceed the maximum for the requester or for the namespace of the given request. Requests
   * whose `status.ended.until` has passed, that are being deleted, or for which `isRemoved` is true, do not count.
   */
  surplus({ namespace, spec }: RequestView, isRemoved: (request: RequestView) => boolean): readonly RequestView[] {
    const { requests } = this.#deps.kind;
    const now = formatTime(this.#deps.clock.now());
    const isKept = (request: RequestView): boolean =>
      request.namespace === namespace && isRetained(request, now) && !isRemoved(request);
    const ofNamespace = requests.byIndex(byNamespace, namespace).filter(isKept);
    const ofRequester = spec.requester ? requests.byIndex(byUser, spec.requester.username).filter(isKept) : [];
    return [...oldest(ofRequester, maxPerRequester), ...oldest(ofNamespace, maxPerNamespace)];
  }

  /** Whether the store shows that the request has ended. */
  storeShowsEnd({ key, uid }: RequestView): boolean {
    const stored = this.#deps.kind.requests.get(key);
    return stored?.uid === uid && stored.ended !== undefined;
  }
}

/**
 * Whether the request has ended and stays beyond `now`. All times have the same RFC 3339 format, so comparing the texts compares the times.
 */
const isRetained = ({ ended, deleting }: RequestView, now: string): boolean =>
  ended !== undefined && ended.until > now && !deleting;

/** The oldest of the ended requests that exceed `max`. */
function oldest(kept: RequestView[], max: number): RequestView[] {
  if (kept.length <= max) return [];
  const order = (a: RequestView, b: RequestView): number => compare(endedAt(a), endedAt(b)) || compare(a.uid, b.uid);
  return kept.sort(order).slice(0, kept.length - max);
}

const endedAt = ({ ended }: RequestView): string => ended?.at ?? '';

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/**
 * How long the ended request stays, milliseconds: `historyTTL` of the template. Without it, only a request with a generated name stays: any
 * other name would remain in use, and the user may want to apply the same manifest again.
 */
function ttlMs({ isNameGenerated }: RequestView, config: AccessConfig | undefined): number {
  const asked = config?.historyTTL === undefined ? undefined : parseGoDuration(config.historyTTL);
  if (asked && 'ns' in asked) return Math.min(Math.max(toMilliseconds(asked.ns), 0), maxTtlMs);
  return isNameGenerated ? defaultTtlMs : 0;
}

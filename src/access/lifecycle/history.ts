import type { Ended } from '../../api/access/ended.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { keyOf } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { AccessKind } from '../access-kind.ts';
import { byNamespace, byUser } from '../stores/access-stores.ts';
import { accessEndMs, type RequestView } from '../stores/access-views.ts';
import { retainedUntilMs } from './request-ends.ts';

/** Without `historyTTL`, an ended request with a generated name stays this long. */
const defaultTtlMs = 24 * 3_600_000;
/** Maximum of `historyTTL`, as in the CRD. */
const maxTtlMs = 168 * 3_600_000;
/** Ended requests of one kind that stay for one requester in a namespace; the oldest go first. */
const maxPerRequester = 50;
/** Ended requests of one kind that stay in a namespace; the oldest go first. */
const maxPerNamespace = 1000;

interface HistoryDeps {
  readonly kind: AccessKind;
  readonly clock: Clock;
}

/** Decides how long requests stay after their end, so that people can read how they ended. */
export class History {
  readonly #deps: HistoryDeps;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
  }

  /**
   * Fixes `until`, whatever later edits say. A denied request stays until its grant would have
   * ended, or `retainedUntilMs`.
   */
  end(request: RequestView, end: Pick<Ended, 'how' | 'reason' | 'by'>, atMs: number): Ended {
    const { kind } = this.#deps;
    const template = keyOf({ namespace: request.namespace, name: request.spec.templateName });
    const config = kind.templates.get(template)?.spec.accessConfig;
    const keptUntilMs = atMs + ttlMs(request, config);
    const denialUntilMs =
      end.how === 'Denied' ? (accessEndMs(request) ?? retainedUntilMs(request, config, atMs)) : keptUntilMs;
    return {
      at: formatTime(atMs),
      how: end.how,
      reason: end.reason,
      ...(end.by === undefined ? {} : { by: end.by }),
      keptUntil: formatTime(Math.max(keptUntilMs, denialUntilMs)),
    };
  }

  /** The oldest ended requests beyond the maximum for the requester or the namespace. */
  surplus({ namespace, spec }: RequestView, isRemoved: (request: RequestView) => boolean): readonly RequestView[] {
    const { requests } = this.#deps.kind;
    const now = formatTime(this.#deps.clock.now());
    const isKept = (request: RequestView): boolean =>
      request.namespace === namespace && isRetained(request, now) && !isRemoved(request);
    const ofNamespace = requests.byIndex(byNamespace, namespace).filter(isKept);
    const ofRequester = spec.requester ? requests.byIndex(byUser, spec.requester.username).filter(isKept) : [];
    return [...oldest(ofRequester, maxPerRequester), ...oldest(ofNamespace, maxPerNamespace)];
  }

  storeShowsEnd({ key, uid }: RequestView): boolean {
    const stored = this.#deps.kind.requests.get(key);
    return stored?.uid === uid && stored.ended !== undefined;
  }
}

/** All times have the same RFC 3339 format, so comparing the texts compares the times. */
const isRetained = ({ ended, deleting }: RequestView, now: string): boolean =>
  ended !== undefined && ended.keptUntil > now && !deleting;

/** The oldest that exceed `max`. */
function oldest(kept: RequestView[], max: number): RequestView[] {
  if (kept.length <= max) return [];
  const order = (a: RequestView, b: RequestView): number => compare(endedAt(a), endedAt(b)) || compare(a.uid, b.uid);
  return kept.sort(order).slice(0, kept.length - max);
}

const endedAt = ({ ended }: RequestView): string => ended?.at ?? '';

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** Milliseconds. By default only a generated name stays: any other must be free again. */
function ttlMs({ isNameGenerated }: RequestView, config: AccessConfig | undefined): number {
  const asked = config?.historyTTL === undefined ? undefined : parseGoDuration(config.historyTTL);
  if (asked && 'ns' in asked) return Math.min(Math.max(toMilliseconds(asked.ns), 0), maxTtlMs);
  return isNameGenerated ? defaultTtlMs : 0;
}

import type { RequestKind } from '../../api/access/kinds.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { type KubeObject, keyOf, type ObjectName } from '../../api/object.ts';
import { configMaps } from '../../api/resources.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';
import type { Store, StoreEvent, StoreSpec } from '../../kube/store.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import { createOrPatchConfigMap } from '../signing/config-map.ts';
import { type ViewMetadata, viewMetadata } from '../stores/access-views.ts';

/** The ConfigMap in the server's namespace: one entry for each emergency access to review. */
export const reviewsName = 'drawbridge-emergency-reviews';

/** Another person has to review this access. The record outlives the request and the template. */
export interface OwedReview {
  readonly user: string;
  /** Empty if the authenticator sets none. */
  readonly userUid: string;
  readonly namespace: string;
  readonly templateKind: TemplateKind;
  readonly template: string;
  readonly templateUid: string;
  readonly templateGeneration: number;
  readonly requestKind: RequestKind;
  readonly request: string;
  readonly requestUid: string;
  /** RFC 3339. Later, the user gets no other emergency access through the template. */
  readonly reviewBy: string;
}

/** Texts by the uid of the request. */
export interface ReviewsView extends ViewMetadata {
  readonly entries: Readonly<Record<string, string>>;
}

export const reviewsSpec = (namespace: string): StoreSpec<ReviewsView> => ({
  resource: configMaps,
  namespace,
  fieldSelector: `metadata.name=${reviewsName}`,
  project: viewReviews,
});

function viewReviews(object: KubeObject): ReviewsView | undefined {
  const metadata = viewMetadata(object);
  const data = own(object, 'data');
  if (!metadata || metadata.name !== reviewsName) return undefined;
  const texts = Object.entries(isRecord(data) ? data : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { ...metadata, entries: Object.fromEntries(texts) };
}

interface EmergencyUse {
  readonly user: { readonly username: string; readonly uid: string };
  readonly namespace: string;
  readonly templateKind: TemplateKind;
  readonly template: string;
}

interface OwedReviewsDeps {
  readonly store: Store<ReviewsView>;
  readonly client: Client;
  readonly namespace: string;
  readonly clock: Clock;
}

/**
 * The reviews still owed, with this process's writes. Only the leader writes: a policy refuses
 * others.
 */
export class OwedReviews {
  readonly #deps: OwedReviewsDeps;
  readonly #latest: WriteThroughCache<ReviewsView>;

  constructor(deps: OwedReviewsDeps) {
    const { store, clock } = deps;
    this.#deps = deps;
    this.#latest = new WriteThroughCache({ watched: (key) => store.get(key), uidOf: ({ uid }) => uid, clock });
  }

  get store(): Store<ReviewsView> {
    return this.#deps.store;
  }

  /** Overdue or not. */
  list(): OwedReview[] {
    const { entries = {} } = this.#latest.get(keyOf(this.#name)) ?? {};
    return Object.entries(entries).flatMap(([uid, text]) => readReview(uid, text) ?? []);
  }

  of(requestUid: string): OwedReview | undefined {
    const text = own(this.#latest.get(keyOf(this.#name))?.entries, requestUid);
    return typeof text === 'string' ? readReview(requestUid, text) : undefined;
  }

  /** As a vote names it: by the uid if the vote has one. */
  find(kind: RequestKind, { namespace, name }: ObjectName, uid: string | undefined): OwedReview | undefined {
    return this.list().find(
      (review) =>
        review.requestKind === kind &&
        review.namespace === namespace &&
        review.request === name &&
        (uid === undefined || review.requestUid === uid),
    );
  }

  overdue(): OwedReview[] {
    const nowMs = this.#deps.clock.now();
    return this.list().filter(({ reviewBy }) => (parseTime(reviewBy) ?? 0) <= nowMs);
  }

  /** It blocks further emergencies of this user, by username or uid, through this template. */
  overdueOf({ user, namespace, templateKind, template }: EmergencyUse): OwedReview | undefined {
    return this.overdue().find(
      (review) =>
        (review.user === user.username || (user.uid !== '' && review.userUid === user.uid)) &&
        review.namespace === namespace &&
        review.templateKind === templateKind &&
        review.template === template,
    );
  }

  async add(review: OwedReview, signal: AbortSignal): Promise<void> {
    await this.#write({ [review.requestUid]: JSON.stringify(review) }, signal);
  }

  /** Once a vote settled the review. */
  async remove(requestUid: string, signal: AbortSignal): Promise<void> {
    await this.#write({ [requestUid]: null }, signal);
  }

  async #write(data: Readonly<Record<string, string | null>>, signal: AbortSignal): Promise<void> {
    await this.#latest.call(keyOf(this.#name), async () =>
      viewReviews(await createOrPatchConfigMap(this.#deps.client, this.#name, { data }, { signal })),
    );
  }

  get #name(): ObjectName {
    return { namespace: this.#deps.namespace, name: reviewsName };
  }
}

/** By request uid. */
export function changedReviews(event: StoreEvent<ReviewsView>): string[] {
  const before = 'before' in event ? event.before.entries : {};
  const now = 'now' in event ? event.now.entries : {};
  return Object.keys({ ...before, ...now }).filter((uid) => before[uid] !== now[uid]);
}

/** For `votePolicy`: without extensions, ended, and possibly deleted. */
export const votedReview = ({
  requestUid,
  template,
  user,
  userUid,
}: Pick<OwedReview, 'requestUid' | 'template' | 'user' | 'userUid'>) =>
  ({
    found: true,
    uid: requestUid,
    templateName: template,
    requester: { username: user, uid: userUid },
    emergency: true,
    extensions: 0,
    decidedExtensions: 0,
    ended: true,
    isDeleted: true,
  }) as const;

/** Does not check the shape: only the server writes it. */
function readReview(requestUid: string, text: string): OwedReview | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return own(parsed, 'requestUid') === requestUid ? (parsed as OwedReview) : undefined;
  } catch {
    return undefined;
  }
}

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
import type { Signer } from '../signing/signer.ts';
import { type ViewMetadata, viewMetadata } from '../stores/access-views.ts';

/** The ConfigMap in the namespace of the server with one entry for each emergency access that another person still has to review. */
export const reviewsName = 'drawbridge-emergency-reviews';

/** Emergency access that another person has to review. This record outlives the request and the template. */
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
  /** RFC 3339. After it, the review is overdue, and the user gets no other emergency access through the template. */
  readonly reviewBy: string;
}

/** The ConfigMap in the store: its entries as texts, by the uid of the request. */
export interface ReviewsView extends ViewMetadata {
  readonly entries: Readonly<Record<string, string>>;
}

/** What the store of the ConfigMap lists. */
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

/** The user who wants emergency access, and the template that would open it. */
interface EmergencyUse {
  readonly user: { readonly username: string; readonly uid: string };
  readonly namespace: string;
  readonly templateKind: TemplateKind;
  readonly template: string;
}

type ReviewSigner = Pick<Signer, 'hasKeys' | 'signReview' | 'isOurReviewByCachedKeys'>;

interface OwedReviewsDeps {
  readonly store: Store<ReviewsView>;
  readonly client: Client;
  readonly signer: ReviewSigner;
  /** Namespace of the server. */
  readonly namespace: string;
  readonly clock: Clock;
}

/**
 * The reviews that are still owed, from the store and this process's own writes. Entries without our MAC count as absent, so that another
 * client cannot invent one. Until the server has read its keys, all entries count as present. Only the leader writes.
 */
export class OwedReviews {
  readonly #deps: OwedReviewsDeps;
  readonly #latest: WriteThroughCache<ReviewsView>;

  constructor(deps: OwedReviewsDeps) {
    const { store, clock } = deps;
    this.#deps = deps;
    this.#latest = new WriteThroughCache({ watched: (key) => store.get(key), uidOf: ({ uid }) => uid, clock });
  }

  /** The store of the ConfigMap, to subscribe to. */
  get store(): Store<ReviewsView> {
    return this.#deps.store;
  }

  /** All reviews that are owed, overdue or not. */
  list(): OwedReview[] {
    const { entries = {} } = this.#latest.get(keyOf(this.#name)) ?? {};
    return Object.entries(entries).flatMap(([uid, text]) => this.#read(uid, text) ?? []);
  }

  /** The review of the access of this request; undefined if none is owed. */
  of(requestUid: string): OwedReview | undefined {
    const text = own(this.#latest.get(keyOf(this.#name))?.entries, requestUid);
    return typeof text === 'string' ? this.#read(requestUid, text) : undefined;
  }

  /** The review that a vote names by the kind and the name of the request, and by its uid if the vote has one. */
  find(kind: RequestKind, { namespace, name }: ObjectName, uid: string | undefined): OwedReview | undefined {
    return this.list().find(
      (review) =>
        review.requestKind === kind &&
        review.namespace === namespace &&
        review.request === name &&
        (uid === undefined || review.requestUid === uid),
    );
  }

  /** All overdue reviews. */
  overdue(): OwedReview[] {
    const nowMs = this.#deps.clock.now();
    return this.list().filter(({ reviewBy }) => (parseTime(reviewBy) ?? 0) <= nowMs);
  }

  /** An overdue review that blocks further emergencies of this user through this template. It matches by username or by uid. */
  overdueOf({ user, namespace, templateKind, template }: EmergencyUse): OwedReview | undefined {
    return this.overdue().find(
      (review) =>
        (review.user === user.username || (user.uid !== '' && review.userUid === user.uid)) &&
        review.namespace === namespace &&
        review.templateKind === templateKind &&
        review.template === template,
    );
  }

  /** Signs and records the review. Rejects with `SigningKeyUnavailable` until the keys are read, and as the client does. */
  async add(review: OwedReview, signal: AbortSignal): Promise<void> {
    const entry = JSON.stringify({ ...review, mac: this.#deps.signer.signReview(review) });
    await this.#write({ [review.requestUid]: entry }, signal);
  }

  /** Signs the review again if the previous key signed it, so that it stays valid after the next rotation. Rejects as the client does. */
  async renew(review: OwedReview, signal: AbortSignal): Promise<void> {
    const { signer } = this.#deps;
    const { mac } = parseEntry(this.#latest.get(keyOf(this.#name))?.entries[review.requestUid] ?? '') ?? {};
    // Until the keys are read, `#read` trusts every entry. Without this check, the server could sign a forged one.
    if (!signer.isOurReviewByCachedKeys(review, mac)) return;
    if (mac !== signer.signReview(review)) await this.add(review, signal);
  }

  /** Removes the review of this request from the ConfigMap, once a vote settled it. Rejects as the client does. */
  async remove(requestUid: string, signal: AbortSignal): Promise<void> {
    await this.#write({ [requestUid]: null }, signal);
  }

  async #write(data: Readonly<Record<string, string | null>>, signal: AbortSignal): Promise<void> {
    await this.#latest.call(keyOf(this.#name), async () =>
      viewReviews(await createOrPatchConfigMap(this.#deps.client, this.#name, { data }, { signal })),
    );
  }

  /**
   * Parses and verifies an entry; undefined if it is invalid. Until the server has read its keys, it trusts all entries, so that it does
   * not delete requests that it keeps for their review.
   */
  #read(requestUid: string, text: string): OwedReview | undefined {
    const entry = parseEntry(text);
    if (!entry || entry.review.requestUid !== requestUid) return undefined;
    const { signer } = this.#deps;
    return !signer.hasKeys || signer.isOurReviewByCachedKeys(entry.review, entry.mac) ? entry.review : undefined;
  }

  get #name(): ObjectName {
    return { namespace: this.#deps.namespace, name: reviewsName };
  }
}

/** The uids of the requests whose reviews an event adds, changes, or removes. */
export function changedReviews(event: StoreEvent<ReviewsView>): string[] {
  const before = 'before' in event ? event.before.entries : {};
  const now = 'now' in event ? event.now.entries : {};
  return Object.keys({ ...before, ...now }).filter((uid) => before[uid] !== now[uid]);
}

/** The request of an owed review, as input of `votePolicy`. It has no extensions and has ended; the object itself may be deleted. */
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

/**
 * Parses an entry; undefined if it is no JSON object. Does not check the shape of the review, because the signature covers all its fields.
 */
function parseEntry(text: string): { readonly review: OwedReview; readonly mac: unknown } | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isRecord(parsed)) return undefined;
    const { mac, ...review } = parsed;
    return { review: review as unknown as OwedReview, mac };
  } catch {
    return undefined;
  }
}

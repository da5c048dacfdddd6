import { type RequestView, type ViewMetadata, viewMetadata, viewRequest } from '../access/stores/access-views.ts';
import { accessSessionKind, accessSessions } from '../api/access/access-session.ts';
import { type Access, accesses, type RequestKind } from '../api/access/kinds.ts';
import {
  notificationProviderKind,
  notificationProviders,
  testAnnotation,
} from '../api/notify/notification-provider.ts';
import { notificationSubscriptionKind, notificationSubscriptions } from '../api/notify/notification-subscription.ts';
import { type Condition, type KubeObject, keyOf } from '../api/object.ts';
import { type Kind, type ObjectOf, readObject } from '../api/schema/kind.ts';
import { parseTime } from '../kit/clock.ts';
import { listIn, own } from '../kit/json-value.ts';
import { compileSelector } from '../kit/label-selector.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store, StoreSpec } from '../kube/store.ts';

/** Times are epoch ms. */
export interface NotifiedRequest extends RequestView {
  readonly kind: RequestKind;
  /** By the API server; the creation if it records no writes. */
  readonly lastWriteMs: number;
}

interface View<K extends Kind> extends ViewMetadata {
  readonly generation: number;
  readonly createdAtMs: number;
  readonly spec: ObjectOf<K>['spec'];
  readonly status: ObjectOf<K>['status'];
  readonly labels: Readonly<Record<string, string>>;
  /** Of a session: the uid of the request. */
  readonly ownerUid?: string | undefined;
  /** The value of `testAnnotation`, as long as `status.lastTest.id` can be. */
  readonly testId?: string | undefined;
}

export type NotifiedTemplate = View<Access['template']>;
export type NotifiedSession = Pick<View<typeof accessSessionKind>, keyof ViewMetadata | 'spec' | 'ownerUid'>;
export type ProviderView = View<typeof notificationProviderKind>;
export type SubscriptionView = View<typeof notificationSubscriptionKind> & {
  /** Whether it selects a template with these labels. Compiled once: each fact asks each subscription. */
  readonly matches: (labels: Readonly<Record<string, string>>) => boolean;
  /** Of the selector, which then matches nothing. */
  readonly selectorError?: string;
};

export interface NotifyStores {
  /** In the order of `accesses`. */
  readonly requests: readonly Store<NotifiedRequest>[];
  /** In the order of `accesses`. */
  readonly templates: readonly Store<NotifiedTemplate>[];
  readonly sessions: Store<NotifiedSession>;
  readonly providers: Store<ProviderView>;
  readonly subscriptions: Store<SubscriptionView>;
  /** For readiness. */
  readonly all: readonly Store<Projected>[];
}

/** Index of requests and sessions. */
export const byUid = 'uid';
/** Index of requests, sessions, and subscriptions. */
export const byNamespace = 'namespace';
/** Index of subscriptions: `namespace/name` of the provider. */
export const byProvider = 'provider';

export function openNotifyStores(cluster: Pick<Cluster, 'watch'>): NotifyStores {
  const open = <T extends Projected>(spec: StoreSpec<T>): Store<T> => cluster.watch(spec).store;
  const indexes = {
    [byUid]: ({ uid }: ViewMetadata) => [uid],
    [byNamespace]: ({ namespace }: ViewMetadata) => [namespace],
  };
  const requests = accesses.map(({ request }) =>
    open({ resource: request.resource, project: viewNotified(request.resource.kind), indexes }),
  );
  const templates = accesses.map(({ template }) =>
    open({ resource: template.resource, project: viewOf<Access['template']>(template) }),
  );
  // A cluster without the gateway may lack the kind.
  const sessions = open({ resource: accessSessions, project: viewOf(accessSessionKind), optional: true, indexes });
  const providers = open({ resource: notificationProviders, project: viewProvider });
  const subscriptions = open({
    resource: notificationSubscriptions,
    project: viewSubscription,
    indexes: {
      ...indexes,
      [byProvider]: (subscription: SubscriptionView) => [providerKeyOf(subscription)],
    },
  });
  const all = [...requests, ...templates, sessions, providers, subscriptions];
  return { requests, templates, sessions, providers, subscriptions, all };
}

export const providerKeyOf = ({ namespace, spec }: Pick<SubscriptionView, 'namespace' | 'spec'>): string =>
  keyOf({ namespace: spec.providerRef.namespace ?? namespace, name: spec.providerRef.name });

const viewNotified =
  (kind: RequestKind) =>
  (object: KubeObject): NotifiedRequest | undefined => {
    const view = viewRequest({ ...object, kind });
    return view && { ...view, kind, lastWriteMs: Math.max(view.createdAtMs, ...writesOf(object)) };
  };

const writesOf = ({ metadata }: KubeObject): number[] =>
  listIn(metadata, 'managedFields')
    .slice(0, 64)
    .flatMap((entry) => parseTime(String(own(entry, 'time'))) ?? []);

/** An object that violates its schema, or lacks metadata, counts as absent. */
const viewOf =
  <K extends Kind>(kind: K) =>
  (object: KubeObject): View<K> | undefined => {
    const metadata = viewMetadata(object);
    const read = readObject(kind, object);
    const createdAtMs = parseTime(object.metadata.creationTimestamp ?? '');
    if (!metadata || !read.ok || createdAtMs === undefined) return undefined;
    const { generation = 0, labels = {}, annotations, ownerReferences } = object.metadata;
    // As the API server stores it in the status: a surrogate alone would never be equal.
    const testId = annotations?.[testAnnotation] && Buffer.from(annotations[testAnnotation].slice(0, 128)).toString();
    const { spec, status } = read.value;
    const ownerUid = ownerReferences?.[0]?.uid;
    return { ...metadata, generation, createdAtMs, spec, status, labels: { ...labels }, ownerUid, testId };
  };

export const viewProvider = viewOf(notificationProviderKind);

export function viewSubscription(object: KubeObject): SubscriptionView | undefined {
  const view = viewOf(notificationSubscriptionKind)(object);
  if (!view) return undefined;
  const selector = compileSelector(view.spec.templateSelector ?? {});
  return 'error' in selector
    ? { ...view, matches: () => false, selectorError: selector.error }
    : { ...view, matches: selector.matches };
}

/** Of the present spec. */
export const readyOf = ({ status, generation }: Pick<ProviderView, 'status' | 'generation'>): Condition | undefined =>
  status?.conditions?.find((one) => one.type === 'Ready' && one.observedGeneration === generation);

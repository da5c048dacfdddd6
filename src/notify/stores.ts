import { type RequestView, type ViewMetadata, viewMetadata, viewRequest } from '../access/stores/access-views.ts';
import type { ApprovalEntry } from '../api/access/access-config.ts';
import { type AccessSession, accessSessionKind, accessSessions } from '../api/access/access-session.ts';
import type { TemplateRule } from '../api/access/grant.ts';
import { type Access, accesses, type RequestKind } from '../api/access/kinds.ts';
import {
  type NotificationProvider,
  notificationProviderKind,
  notificationProviders,
  type ProviderSpec,
  type ProviderStatus,
  testAnnotation,
} from '../api/notify/notification-provider.ts';
import {
  type NotificationSubscription,
  notificationSubscriptionKind,
  notificationSubscriptions,
  type SubscriptionSpec,
} from '../api/notify/notification-subscription.ts';
import { apiVersionOf, type Condition, type KubeObject, keyOf, type Resource } from '../api/object.ts';
import { type ObjectOf, readObject } from '../api/schema/kind.ts';
import { parseTime } from '../kit/clock.ts';
import { own } from '../kit/json-value.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store, StoreSpec } from '../kube/store.ts';

/** Times are epoch ms. */
export interface NotifiedRequest extends RequestView {
  readonly kind: RequestKind;
  /** By the API server; the creation if it records no writes. */
  readonly lastWriteMs: number;
}

/** Labels choose subscriptions; the rest is what a message says of a request without a grant. */
export interface TemplateContext {
  readonly labels: Readonly<Record<string, string>>;
  readonly approvals: readonly ApprovalEntry[];
  readonly defaultDuration: string;
  readonly rules: readonly TemplateRule[];
  readonly exec: boolean;
}

export interface NotifiedTemplate extends ViewMetadata, TemplateContext {}

export interface NotifiedSession extends ViewMetadata {
  readonly spec: AccessSession['spec'];
}

export interface ProviderView extends ViewMetadata {
  readonly generation: number;
  readonly createdAtMs: number;
  readonly spec: ProviderSpec;
  readonly conditions: readonly Condition[];
  readonly lastTest: ProviderStatus['lastTest'];
  /** The value of `testAnnotation`, as long as `lastTest.id` can be. */
  readonly testId: string | undefined;
}

export interface SubscriptionView extends ViewMetadata {
  readonly generation: number;
  readonly createdAtMs: number;
  readonly spec: SubscriptionSpec;
  readonly conditions: readonly Condition[];
}

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
  const templates = accesses.map((access) =>
    open({ resource: access.template.resource, project: viewContext(access) }),
  );
  // A cluster without the gateway may lack the kind.
  const sessions = open({ resource: accessSessions, project: viewSession, optional: true, indexes });
  const providers = open({ resource: notificationProviders, project: viewProvider });
  const subscriptions = open({
    resource: notificationSubscriptions,
    project: viewSubscription,
    indexes: {
      [byNamespace]: ({ namespace }: SubscriptionView) => [namespace],
      [byProvider]: (subscription: SubscriptionView) => [providerKeyOf(subscription)],
    },
  });
  const all = [...requests, ...templates, sessions, providers, subscriptions];
  return { requests, templates, sessions, providers, subscriptions, all };
}

export const providerKeyOf = ({ namespace, spec }: Pick<SubscriptionView, 'namespace' | 'spec'>): string =>
  keyOf({ namespace: spec.providerRef.namespace ?? namespace, name: spec.providerRef.name });

/** Items of a list have no kind, by which the readers find the schema. */
const typed = (object: KubeObject, resource: Resource): KubeObject => ({
  ...object,
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
});

const viewNotified =
  (kind: RequestKind) =>
  (object: KubeObject): NotifiedRequest | undefined => {
    const view = viewRequest({ ...object, kind });
    return view && { ...view, kind, lastWriteMs: Math.max(view.createdAtMs, ...writesOf(object)) };
  };

const writesOf = ({ metadata: { managedFields } }: KubeObject): number[] =>
  (Array.isArray(managedFields) ? managedFields : []).slice(0, 64).flatMap((entry) => {
    const time = own(entry, 'time');
    return (typeof time === 'string' ? parseTime(time) : undefined) ?? [];
  });

const viewContext =
  ({ template }: Access) =>
  (object: KubeObject): NotifiedTemplate | undefined => {
    const metadata = viewMetadata(object);
    const read = readObject(template, typed(object, template.resource));
    if (!metadata || !read.ok) return undefined;
    const { accessConfig } = (read.value as ObjectOf<Access['template']>).spec;
    const { approvals, defaultDuration, exec = true, allow = [], rules = [] } = accessConfig;
    const allowed = allow.map((preset) => presets[preset]);
    return {
      ...metadata,
      labels: { ...object.metadata.labels },
      approvals: approvals?.all ?? [],
      defaultDuration,
      exec,
      rules: [...allowed, ...rules],
    };
  };

const presets: Readonly<Record<'logs' | 'port-forward', TemplateRule>> = {
  logs: { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  'port-forward': { apiGroups: [''], resources: ['pods/portforward'], verbs: ['create'] },
};

function viewSession(object: KubeObject): NotifiedSession | undefined {
  const metadata = viewMetadata(object);
  const read = readObject(accessSessionKind, typed(object, accessSessions));
  return metadata && read.ok ? { ...metadata, spec: (read.value as AccessSession).spec } : undefined;
}

function viewProvider(object: KubeObject): ProviderView | undefined {
  const common = viewCommon(object);
  const read = readObject(notificationProviderKind, typed(object, notificationProviders));
  if (!common || !read.ok) return undefined;
  const { spec, status, metadata } = read.value as NotificationProvider;
  const testId = metadata.annotations?.[testAnnotation]?.slice(0, 128);
  return { ...common, spec, conditions: status?.conditions ?? [], lastTest: status?.lastTest, testId };
}

function viewSubscription(object: KubeObject): SubscriptionView | undefined {
  const common = viewCommon(object);
  const read = readObject(notificationSubscriptionKind, typed(object, notificationSubscriptions));
  if (!common || !read.ok) return undefined;
  const { spec, status } = read.value as NotificationSubscription;
  return { ...common, spec, conditions: status?.conditions ?? [] };
}

function viewCommon(object: KubeObject) {
  const metadata = viewMetadata(object);
  const createdAtMs = parseTime(object.metadata.creationTimestamp ?? '');
  if (!metadata || createdAtMs === undefined) return undefined;
  return { ...metadata, generation: object.metadata.generation ?? 0, createdAtMs };
}

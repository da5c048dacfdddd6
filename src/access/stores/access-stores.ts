import { accessSessions } from '../../api/access/access-session.ts';
import { accessVotes } from '../../api/access/access-vote.ts';
import { type Access, accesses, type RequestKind } from '../../api/access/kinds.ts';
import { requestLabel } from '../../api/access/names.ts';
import { apiVersionOf, keyOf, type Resource } from '../../api/object.ts';
import {
  daemonSets,
  deployments,
  networkPolicies,
  podDisruptionBudgets,
  pods,
  roleBindings,
  roles,
  rollouts,
  services,
  statefulSets,
} from '../../api/resources.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Projected, Store, StoreSpec } from '../../kube/store.ts';
import { type RequestView, type TemplateView, targetKey, viewRequest, viewTemplate } from './access-views.ts';
import {
  type ChildView,
  type PodView,
  type RequestRef,
  type SelectorView,
  viewChild,
  viewPod,
  viewSelector,
  viewWorkload,
  type WorkloadView,
} from './cluster-views.ts';
import { type GatewayView, gatewaySpec } from './gateway-view.ts';
import { type LostRecordingView, viewLostRecording } from './lost-recording-view.ts';
import { type VoteView, viewVote } from './vote-view.ts';

/** The two stores of one kind of access. */
interface KindStores {
  readonly requests: Store<RequestView>;
  readonly templates: Store<TemplateView>;
}

/**
 * Informer stores of the access feature, except that of the owed emergency reviews (one ConfigMap, see `reviewsSpec`). The feature reads
 * ReplicaSets, ServiceAccounts, Secrets, and other ConfigMaps without a store.
 */
export interface AccessStores {
  /** The request store and the template store of one kind of access. */
  of(kind: RequestKind): KindStores;
  /** The request stores of all kinds, in the order of `accesses`. */
  readonly requests: readonly Store<RequestView>[];
  /** The template stores of all kinds, in the order of `accesses`. */
  readonly templates: readonly Store<TemplateView>[];
  readonly pods: Store<PodView>;
  /** Only Roles of grants. */
  readonly roles: Store<ChildView>;
  /** Only RoleBindings of grants. */
  readonly roleBindings: Store<ChildView>;
  readonly votes: Store<VoteView>;
  /** Sessions whose recording was lost. */
  readonly lostRecordings: Store<LostRecordingView>;
  /** At most one object: the APIService of the gateway. */
  readonly gateway: Store<GatewayView>;
  readonly workloads: readonly Store<WorkloadView>[];
  /** The workload with this `targetKey`; undefined if it does not exist. */
  workload(key: string): WorkloadView | undefined;
  workloadsIn(namespace: string): WorkloadView[];
  /** Services, PodDisruptionBudgets, and NetworkPolicies, which select pods by labels. */
  readonly selectors: readonly Store<SelectorView>[];
  selectorsIn(namespace: string): SelectorView[];
  /** All stores of this interface, for readiness. */
  readonly all: readonly Store<Projected>[];
}

/** Index of request stores: `namespace/name` of the template. */
export const byTemplate = 'template';
/** Index of request stores: the uid of the request. */
export const byUid = 'uid';
/** Index of request stores: `namespace/name` of the granted pod. */
export const byPod = 'pod';
/** Index of template stores: the `targetKey` of the workload, such as `Deployment/payments/web`. */
export const byTarget = 'target';
/** Index of request stores: the user name of the requester. */
export const byUser = 'user';
/** Index of the stores of pods, requests, templates, workloads, and selectors: the namespace. */
export const byNamespace = 'namespace';
/** Index of the stores of Pods, Roles, RoleBindings, votes, and lost recordings: the uid of the request that the object belongs to. */
export const byRequest = 'request';

/** Opens the stores of the access feature in `cluster`. */
export function openAccessStores(cluster: Cluster): AccessStores {
  const open = <T extends Projected>(spec: StoreSpec<T>): Store<T> => cluster.watch(spec).store;
  const workloads = [deployments, statefulSets, daemonSets, rollouts].map((resource) =>
    open({
      resource,
      project: viewWorkload(resource),
      optional: resource === rollouts,
      indexes: { [byNamespace]: (workload: WorkloadView) => [workload.namespace] },
    }),
  );
  const selectors = (
    [
      [services, 'Service'],
      [podDisruptionBudgets, 'PodDisruptionBudget'],
      [networkPolicies, 'NetworkPolicy'],
    ] as const
  ).map(([resource, kind]) =>
    open({
      resource,
      project: viewSelector(kind),
      indexes: { [byNamespace]: (selector: SelectorView) => [selector.namespace] },
    }),
  );
  const templates = accesses.map((access) => open(templateSpec(access)));
  const requests = accesses.map(({ request }) => open(requestSpec(request.resource)));
  const kinds = Object.fromEntries(
    accesses.map(({ request }, index) => [
      request.resource.kind,
      { requests: requests[index], templates: templates[index] },
    ]),
  ) as Readonly<Record<RequestKind, KindStores>>;
  const children = {
    pods: open({
      resource: pods,
      project: viewPod,
      indexes: { [byNamespace]: (pod: PodView) => [pod.namespace], [byRequest]: requestUidOf },
    }),
    roles: open(childSpec(roles)),
    roleBindings: open(childSpec(roleBindings)),
  };
  const votes = open({
    resource: accessVotes,
    // Access without approvals must open and end even if the CRD of votes is not installed yet, or was deleted.
    optional: true,
    project: (object) => viewVote({ ...object, apiVersion: apiVersionOf(accessVotes), kind: accessVotes.kind }),
    indexes: { [byRequest]: ({ requestUid }: VoteView) => [requestUid] },
  });
  const lostRecordings = open({
    resource: accessSessions,
    // The gateway writes these objects, and it may not be installed.
    optional: true,
    project: viewLostRecording,
    indexes: { [byRequest]: ({ requestUid }: LostRecordingView) => [requestUid] },
  });
  const gateway = open(gatewaySpec);
  const workloadsByKind = new Map(workloads.map((store) => [store.resource.kind, store]));
  return {
    of: (kind) => kinds[kind],
    requests,
    templates,
    ...children,
    votes,
    lostRecordings,
    gateway,
    workloads,
    workload(key) {
      const slash = key.indexOf('/');
      return workloadsByKind.get(key.slice(0, slash))?.get(key.slice(slash + 1));
    },
    workloadsIn: (namespace) => workloads.flatMap((store) => store.byIndex(byNamespace, namespace)),
    selectors,
    selectorsIn: (namespace) => selectors.flatMap((store) => store.byIndex(byNamespace, namespace)),
    all: [
      ...templates,
      ...requests,
      ...Object.values(children),
      votes,
      lostRecordings,
      gateway,
      ...workloads,
      ...selectors,
    ],
  };
}

const requestUidOf = ({ requestRef }: { readonly requestRef?: RequestRef }): string[] =>
  requestRef ? [requestRef.uid] : [];

const childSpec = (resource: Resource): StoreSpec<ChildView> => ({
  resource,
  labelSelector: requestLabel,
  project: viewChild,
  indexes: { [byRequest]: requestUidOf },
});

function templateSpec(access: Access): StoreSpec<TemplateView> {
  const target = ({ spec, namespace }: TemplateView): string[] =>
    spec.controllerTargetRef ? [targetKey(spec.controllerTargetRef, namespace)] : [];
  const namespaces = ({ namespace }: TemplateView): string[] => [namespace];
  const indexes = { [byTarget]: target, [byNamespace]: namespaces };
  return { resource: access.template.resource, project: viewTemplate(access), indexes };
}

function requestSpec(resource: Resource): StoreSpec<RequestView> {
  return {
    resource,
    // Items of a list have no kind, by which `viewRequest` finds the schema.
    project: (object) => viewRequest({ ...object, kind: resource.kind }),
    indexes: {
      [byUid]: (request) => [request.uid],
      [byNamespace]: ({ namespace }) => [namespace],
      [byUser]: ({ spec }) => (spec.requester ? [spec.requester.username] : []),
      [byTemplate]: ({ namespace, spec }) => [keyOf({ namespace, name: spec.templateName })],
      [byPod]: ({ namespace, grant }) => (grant ? [keyOf({ namespace, name: grant.pod.name })] : []),
    },
  };
}

/**
 * Keys of the requests whose access `pod` is or was for: the request that its label names, and those with a grant on its name. Omits
 * requests that wait for a running pod of their workload.
 */
export function requestsOfPod(requests: Store<RequestView>, pod: PodView): string[] {
  const requestUid = pod.labels[requestLabel];
  const owners = requestUid === undefined ? [] : requests.byIndex(byUid, requestUid);
  return [...new Set([...owners, ...requests.byIndex(byPod, pod.key)].map((request) => request.key))];
}

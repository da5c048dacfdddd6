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
import { type VoteView, viewVote } from './vote-view.ts';

interface KindStores {
  readonly requests: Store<RequestView>;
  readonly templates: Store<TemplateView>;
}

/**
 * Informer stores of the access feature. Owed reviews have their own; ReplicaSets, ServiceAccounts,
 * Secrets, and other ConfigMaps are read live.
 */
export interface AccessStores {
  of(kind: RequestKind): KindStores;
  /** In the order of `accesses`. */
  readonly requests: readonly Store<RequestView>[];
  /** In the order of `accesses`. */
  readonly templates: readonly Store<TemplateView>[];
  readonly pods: Store<PodView>;
  /** Only those of grants. */
  readonly roles: Store<ChildView>;
  /** Only those of grants. */
  readonly roleBindings: Store<ChildView>;
  readonly votes: Store<VoteView>;
  /** At most one object: the APIService of the gateway. */
  readonly gateway: Store<GatewayView>;
  readonly workloads: readonly Store<WorkloadView>[];
  /** By `targetKey`. */
  workload(key: string): WorkloadView | undefined;
  workloadsIn(namespace: string): WorkloadView[];
  /** Services, PodDisruptionBudgets, and NetworkPolicies: they select pods by labels. */
  readonly selectors: readonly Store<SelectorView>[];
  selectorsIn(namespace: string): SelectorView[];
  /** All stores of this interface, for readiness. */
  readonly all: readonly Store<Projected>[];
}

/** Index of requests: `namespace/name` of the template. */
export const byTemplate = 'template';
/** Index of requests: their uid. */
export const byUid = 'uid';
/** Index of requests: `namespace/name` of the granted pod. */
export const byPod = 'pod';
/** Index of templates: the `targetKey` of the workload. */
export const byTarget = 'target';
/** Index of requests: the user name of the requester. */
export const byUser = 'user';
/** Index of pods, requests, templates, workloads, and selectors. */
export const byNamespace = 'namespace';
/** Index of Pods, Roles, RoleBindings, and votes: the uid of their request. */
export const byRequest = 'request';

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
    // Access without approvals must open and end even without the CRD of votes.
    optional: true,
    project: (object) => viewVote({ ...object, apiVersion: apiVersionOf(accessVotes), kind: accessVotes.kind }),
    indexes: { [byRequest]: ({ requestUid }: VoteView) => [requestUid] },
  });
  const gateway = open(gatewaySpec);
  const workloadsByKind = new Map(workloads.map((store) => [store.resource.kind, store]));
  return {
    of: (kind) => kinds[kind],
    requests,
    templates,
    ...children,
    votes,
    gateway,
    workloads,
    workload(key) {
      const slash = key.indexOf('/');
      return workloadsByKind.get(key.slice(0, slash))?.get(key.slice(slash + 1));
    },
    workloadsIn: (namespace) => workloads.flatMap((store) => store.byIndex(byNamespace, namespace)),
    selectors,
    selectorsIn: (namespace) => selectors.flatMap((store) => store.byIndex(byNamespace, namespace)),
    all: [...templates, ...requests, ...Object.values(children), votes, gateway, ...workloads, ...selectors],
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

/** Those that the pod's label names, and those with a grant on its name. */
export function requestsOfPod(requests: Store<RequestView>, pod: PodView): string[] {
  const requestUid = pod.labels[requestLabel];
  const owners = requestUid === undefined ? [] : requests.byIndex(byUid, requestUid);
  return [...new Set([...owners, ...requests.byIndex(byPod, pod.key)].map((request) => request.key))];
}

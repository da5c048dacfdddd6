import { type Access, accesses, type RequestKind } from '../../api/access/kinds.ts';
import { requestLabel } from '../../api/access/names.ts';
import { keyOf, type Resource } from '../../api/object.ts';
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
  type MadeFor,
  type PodView,
  type SelectorView,
  viewChild,
  viewPod,
  viewSelector,
  viewWorkload,
  type WorkloadView,
} from './cluster-views.ts';

/** The two stores of one kind of access. */
interface KindStores {
  readonly requests: Store<RequestView>;
  readonly templates: Store<TemplateView>;
}

/** Live copies of everything that decisions about access are made from. */
export interface AccessStores {
  of(kind: RequestKind): KindStores;
  /** Of every kind, in the order of `accesses`. */
  readonly requests: readonly Store<RequestView>[];
  readonly templates: readonly Store<TemplateView>[];
  readonly pods: Store<PodView>;
  /** Of ours only. */
  readonly roles: Store<ChildView>;
  readonly roleBindings: Store<ChildView>;
  readonly workloads: readonly Store<WorkloadView>[];
  /** The workload under a `targetKey`. */
  workload(key: string): WorkloadView | undefined;
  workloadsIn(namespace: string): WorkloadView[];
  /** What acts on pods by their labels: Services, PodDisruptionBudgets, NetworkPolicies. */
  readonly selectors: readonly Store<SelectorView>[];
  selectorsIn(namespace: string): SelectorView[];
  readonly all: readonly Store<Projected>[];
}

/** Indexes of request stores. */
export const byTemplate = 'template';
export const byUid = 'uid';
export const byPod = 'pod';
/** Index of template stores: `targetKey`. */
export const byTarget = 'target';
/** Index of request stores: the name of the requester. */
export const byUser = 'user';
/** Index of the stores of pods, requests, workloads and selectors. */
export const byNamespace = 'namespace';
/** Index of the stores of what we made: the uid of the request. */
export const byRequest = 'request';

export function openAccessStores(cluster: Cluster): AccessStores {
  const open = <T extends Projected>(spec: StoreSpec<T>): Store<T> => cluster.watch(spec).store;
  const workloads = [deployments, statefulSets, daemonSets, rollouts].map((resource) =>
    open({
      resource,
      project: viewWorkload(resource),
      optional: resource === rollouts,
      indexes: { [byNamespace]: (one: WorkloadView) => [one.namespace] },
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
      indexes: { [byNamespace]: (one: SelectorView) => [one.namespace] },
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
      indexes: { [byNamespace]: (pod: PodView) => [pod.namespace], [byRequest]: requestUids },
    }),
    roles: open(childSpec(roles)),
    roleBindings: open(childSpec(roleBindings)),
  };
  const workloadsByKind = new Map(workloads.map((store) => [store.resource.kind, store]));
  return {
    of: (kind) => kinds[kind],
    requests,
    templates,
    ...children,
    workloads,
    workload(key) {
      const slash = key.indexOf('/');
      return workloadsByKind.get(key.slice(0, slash))?.get(key.slice(slash + 1));
    },
    workloadsIn: (namespace) => workloads.flatMap((store) => store.byIndex(byNamespace, namespace)),
    selectors,
    selectorsIn: (namespace) => selectors.flatMap((store) => store.byIndex(byNamespace, namespace)),
    all: [...templates, ...requests, ...Object.values(children), ...workloads, ...selectors],
  };
}

const requestUids = ({ madeFor }: { readonly madeFor?: MadeFor }): string[] => (madeFor ? [madeFor.uid] : []);

const childSpec = (resource: Resource): StoreSpec<ChildView> => ({
  resource,
  labelSelector: requestLabel,
  project: viewChild,
  indexes: { [byRequest]: requestUids },
});

function templateSpec(access: Access): StoreSpec<TemplateView> {
  const target = ({ spec, namespace }: TemplateView): string[] =>
    spec.controllerTargetRef ? [targetKey(spec.controllerTargetRef, namespace)] : [];
  return { resource: access.template.resource, project: viewTemplate(access), indexes: { [byTarget]: target } };
}

function requestSpec(resource: Resource): StoreSpec<RequestView> {
  return {
    resource,
    // List items come without kind, which tells the kinds apart.
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

/** The requests that a change of `pod` may concern: the one it was made for, and those that were granted access to it. */
export function requestsOfPod(requests: Store<RequestView>, pod: PodView): string[] {
  const owner = pod.labels[requestLabel];
  const owned = owner === undefined ? [] : requests.byIndex(byUid, owner);
  return [...new Set([...owned, ...requests.byIndex(byPod, pod.key)].map((request) => request.key))];
}

import {
  type ExecAccessTemplateSpec,
  execAccessRequests,
  execAccessTemplates,
  readExecAccessTemplate,
} from '../../api/access/exec-access.ts';
import { requestLabel } from '../../api/access/names.ts';
import {
  type PodAccessTemplateSpec,
  podAccessRequests,
  podAccessTemplates,
  readPodAccessTemplate,
} from '../../api/access/pod-access.ts';
import { apiVersionOf, type KubeObject, keyOf, type Resource } from '../../api/object.ts';
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
import { type TargetedSpec, targetKey } from '../template/target.ts';
import { viewChild } from './child-view.ts';
import { viewPod } from './pod-view.ts';
import { viewRequest } from './request-view.ts';
import { viewSelector } from './selector-view.ts';
import { viewTemplate } from './template-view.ts';
import type { ChildView, MadeFor, PodView, RequestView, SelectorView, TemplateView, WorkloadView } from './views.ts';
import { viewWorkload } from './workload-view.ts';

/** Live copies of everything that decisions about access are made from. */
export interface AccessStores {
  readonly podTemplates: Store<TemplateView<PodAccessTemplateSpec>>;
  readonly execTemplates: Store<TemplateView<ExecAccessTemplateSpec>>;
  readonly podRequests: Store<RequestView>;
  readonly execRequests: Store<RequestView>;
  readonly pods: Store<PodView>;
  /** Of ours only. */
  readonly roles: Store<ChildView>;
  readonly roleBindings: Store<ChildView>;
  readonly workloads: readonly Store<WorkloadView>[];
  /** The workload under a `targetKey`. */
  workload(key: string): WorkloadView | undefined;
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
/** Index of the stores of pods, requests and selectors. */
export const byNamespace = 'namespace';
/** Index of the stores of what we made: the uid of the request. */
export const byRequest = 'request';

export const projectPodTemplate = viewTemplate<PodAccessTemplateSpec>(readPodAccessTemplate);
export const projectExecTemplate = viewTemplate<ExecAccessTemplateSpec>(readExecAccessTemplate);

export function openAccessStores(cluster: Cluster): AccessStores {
  const open = <T extends Projected>(spec: StoreSpec<T>): Store<T> => cluster.watch(spec).store;
  const workloads = [deployments, statefulSets, daemonSets, rollouts].map((resource) =>
    open({ resource, project: viewWorkload(apiVersionOf(resource), resource.kind), optional: resource === rollouts }),
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
  const stores = {
    podTemplates: open(templateSpec(podAccessTemplates, projectPodTemplate)),
    execTemplates: open(
      templateSpec(execAccessTemplates, viewTemplate<ExecAccessTemplateSpec>(readExecAccessTemplate)),
    ),
    podRequests: open(requestSpec(podAccessRequests)),
    execRequests: open(requestSpec(execAccessRequests)),
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
    ...stores,
    workloads,
    workload(key) {
      const slash = key.indexOf('/');
      return workloadsByKind.get(key.slice(0, slash))?.get(key.slice(slash + 1));
    },
    selectors,
    selectorsIn: (namespace) => selectors.flatMap((store) => store.byIndex(byNamespace, namespace)),
    all: [...Object.values(stores), ...workloads, ...selectors],
  };
}

const requestUids = ({ madeFor }: { readonly madeFor?: MadeFor }): string[] => (madeFor ? [madeFor.uid] : []);

const childSpec = (resource: Resource): StoreSpec<ChildView> => ({
  resource,
  labelSelector: requestLabel,
  project: viewChild,
  indexes: { [byRequest]: requestUids },
});

function templateSpec<Spec extends TargetedSpec>(
  resource: Resource,
  project: (object: KubeObject) => TemplateView<Spec> | undefined,
): StoreSpec<TemplateView<Spec>> {
  const target = ({ spec, namespace }: TemplateView<Spec>): string[] =>
    spec.controllerTargetRef ? [targetKey(spec.controllerTargetRef, namespace)] : [];
  return { resource, project, indexes: { [byTarget]: target } };
}

function requestSpec(resource: Resource): StoreSpec<RequestView> {
  return {
    resource,
    // List items come without kind, which tells the two kinds apart.
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

import { type KubeObject, keyOf, type Resource } from '../api/object.ts';
import { customResourceDefinitions } from '../api/resources.ts';
import { own } from '../kit/json-value.ts';
import { groupPath } from './api-paths.ts';
import type { CallOptions, Client } from './client.ts';
import type { Cluster } from './cluster.ts';
import { isNotFound } from './errors.ts';
import { array, text } from './fields.ts';
import type { Projected, StoreHandle } from './store.ts';

export interface ServedResource {
  readonly namespaced: boolean;
  readonly kind: string;
}

/** How the cluster serves the resource, or undefined when it does not. A live read; rejects when there is no clear answer. */
export async function findServed(
  client: Client,
  resource: Pick<Resource, 'group' | 'version' | 'plural'>,
  options?: CallOptions,
): Promise<ServedResource | undefined> {
  let answer: unknown;
  try {
    answer = await client.raw(groupPath(resource), options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  for (const entry of array(answer, 'resources')) {
    const namespaced = own(entry, 'namespaced');
    const kind = own(entry, 'kind');
    if (own(entry, 'name') === resource.plural && typeof namespaced === 'boolean' && typeof kind === 'string') {
      return { namespaced, kind };
    }
  }
  return undefined;
}

export async function isServed(
  client: Client,
  resource: Pick<Resource, 'group' | 'version' | 'plural'>,
  options?: CallOptions,
): Promise<boolean> {
  return (await findServed(client, resource, options)) !== undefined;
}

/** What is kept of a CustomResourceDefinition. */
export interface CrdView extends Projected {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** The apiserver serves it. */
  readonly established: boolean;
  readonly servedVersions: readonly string[];
}

/** The CustomResourceDefinitions of a cluster: tells when a kind arrives or goes. Keys are `<plural>.<group>`. */
export function watchCrds(cluster: Cluster): StoreHandle<CrdView> {
  return cluster.watch({ resource: customResourceDefinitions, project: projectCrd });
}

function projectCrd({ metadata, spec, status }: KubeObject): CrdView {
  const names = own(spec, 'names');
  return {
    key: keyOf(metadata),
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    group: text(spec, 'group') ?? '',
    plural: text(names, 'plural') ?? '',
    kind: text(names, 'kind') ?? '',
    namespaced: own(spec, 'scope') === 'Namespaced',
    established: array(status, 'conditions').some(
      (condition) => own(condition, 'type') === 'Established' && own(condition, 'status') === 'True',
    ),
    servedVersions: array(spec, 'versions')
      .filter((version) => own(version, 'served') === true)
      .map((version) => text(version, 'name') ?? ''),
  };
}

import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import type { StoreSpec } from '../../kube/store.ts';
import { projections, type Watched } from './projections.ts';

/** Of one watch in a managed cluster, whose server is in the hands of users: more is not kept. */
export const maxObjects = 5_000;

/** A kind that is not there yet is no fault: the watch begins when it comes. */
export function watchSpec({
  cluster,
  group,
  version,
  resource,
  namespace,
  labelSelector,
  fields,
}: RemoteWatch): StoreSpec<Watched> {
  const selectors = [labelSelector ?? '', cluster === 'management' ? entryUidLabel : ''].filter((one) => one !== '');
  return {
    // The kind is only for messages, and whether it is namespaced does not matter to a watch.
    resource: { group, version, plural: resource, kind: resource, namespaced: true },
    ...(namespace === undefined ? {} : { namespace }),
    ...(selectors.length === 0 ? {} : { labelSelector: selectors.join(',') }),
    ...(cluster === 'managed' ? { maxObjects } : {}),
    project: projections[fields],
    optional: true,
  };
}

/** `managed/services.example.org`, as reasons of runs have it. */
export const aboutOf = ({ cluster, group, resource }: RemoteWatch): string =>
  `${cluster}/${resource}${group === '' ? '' : `.${group}`}`;

/** Equal watches have equal texts. */
export const watchText = ({
  cluster,
  group,
  version,
  resource,
  namespace,
  labelSelector,
  fields,
}: RemoteWatch): string =>
  JSON.stringify([cluster, group, version, resource, namespace ?? '', labelSelector ?? '', fields]);

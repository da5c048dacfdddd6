import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { keyOf, type Resource } from '../../api/object.ts';
import type { BindingDeps } from '../deps.ts';
import { isOwnedBy } from '../service-binding/owner.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView, PermissionClaim } from '../stores/views.ts';
import { ConsumerObjects } from '../sync/consumer-objects.ts';
import { consumerResource, syncVersion } from '../sync/sync-version.ts';
import { projectObject } from '../sync/synced-object.ts';
import type { Referrers } from './reference-index.ts';

export type ClaimReference = NonNullable<PermissionClaim['selector']['references']>[number];

export interface OpenReferrers extends Referrers {
  close(): void;
}

/** Opens the consumer's objects of a kind that a claim refers to, or says in one clause why it cannot. */
export type OpenReferrersOf = (reference: ClaimReference) => OpenReferrers | string;

/** Bound kinds share the watch of their syncer; others, which only an export without isolation may name, have one of their own. */
export function referrersOf(session: ProviderSession, exported: ExportView, deps: BindingDeps): OpenReferrersOf {
  return (reference) => {
    const { group, resource: plural, versions = [] } = reference;
    const isBound = exported.resources.some((one) => one.group === group && one.resource === plural);
    if (!isBound) return otherObjects({ group, plural, version: versions[0] }, deps);
    const crd = boundSchemaName(reference);
    const schema = session.stores.schemas.get(keyOf({ namespace: session.clusterNamespace, name: crd }));
    const version = schema && syncVersion(schema, exported);
    if (!version) return 'no version of it is synced';
    // An export may name any definition, also one that was here before.
    const [definition, binding] = [deps.stores.crds.get(crd), deps.stores.bindings.get(exported.name)];
    if (definition && binding && !isOwnedBy(definition.ownerReferences, binding)) {
      return 'its CustomResourceDefinition was not made for the binding';
    }
    const resource = consumerResource(schema, version.name);
    return new ConsumerObjects({ cluster: deps.consumer, crds: deps.stores.crds, crd, resource });
  };
}

function otherObjects(
  { group, plural, version }: { readonly group: string; readonly plural: string; readonly version: string | undefined },
  deps: BindingDeps,
): OpenReferrers | string {
  if (version === undefined) return 'it is not bound and the claim names no version of it';
  const resource: Resource = { group, version, plural, kind: plural, namespaced: true };
  const { store, release } = deps.consumer.watch({
    resource,
    project: projectObject,
    optional: true,
    followsSchema: true,
  });
  return { foreign: true, subscribe: (listener) => store.subscribe(listener), close: release };
}

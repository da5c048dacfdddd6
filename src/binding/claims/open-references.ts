import { boundSchemaName, type GroupResource } from '../../api/binding/group-resource.ts';
import type { PermissionClaim } from '../../api/binding/permission-claim.ts';
import { keyOf, type Resource } from '../../api/object.ts';
import { quote } from '../../kit/errors.ts';
import type { BindingDeps } from '../deps.ts';
import { isOwnedBy } from '../service-binding/owner.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import { ConsumerObjects, consumerResource, syncVersion } from '../sync/consumer-objects.ts';
import { projectObject } from '../sync/synced-object.ts';
import { formatGroupResource } from './claimable.ts';
import { ReferenceIndex, type ReferencePaths, type Referrers } from './reference-index.ts';
import { parseReferencePath } from './reference-path.ts';

export interface OpenReferences {
  readonly index: ReferenceIndex;
  readonly isEmpty: boolean;
  /** In sentences. A reference with a problem selects nothing. */
  readonly problems: readonly string[];
  close(): void;
}

/** Indexes all references in the claims of one kind. */
export function openReferences(
  claims: readonly PermissionClaim[],
  exported: ExportView,
  open: OpenReferrersOf,
): OpenReferences {
  const index = new ReferenceIndex();
  const opened: OpenReferrers[] = [];
  const problems: string[] = [];
  for (const claim of claims) {
    for (const reference of claim.selector.references ?? []) {
      const kind = formatGroupResource(reference);
      const paths = referencePaths(reference, exported);
      const referrers = typeof paths === 'string' ? `${paths}; ${correctClaim}` : open(reference);
      if (typeof paths === 'string' || typeof referrers === 'string') {
        problems.push(`The claim on ${claim.resource} ignores the references of ${kind}: ${referrers}`);
        continue;
      }
      opened.push(referrers);
      index.add(kind, referrers, paths);
    }
  }
  return {
    index,
    isEmpty: opened.length === 0,
    problems,
    close() {
      index.close();
      for (const referrers of opened) referrers.close();
    },
  };
}

const correctClaim = 'ask the provider to correct the claim';

/** The parsed paths, or why the reference is rejected, in one clause. */
function referencePaths(reference: ClaimReference, exported: ExportView): ReferencePaths | string {
  if (!mayRefer(reference, exported)) return `it is not among the resources of the export ${quote(exported.name)}`;
  const { name: nameText, namespace: namespaceText } = reference.jsonPath;
  const name = parseReferencePath(nameText);
  if ('problem' in name) return name.problem;
  const namespace = namespaceText ? parseReferencePath(namespaceText) : undefined;
  if (namespace && 'problem' in namespace) return namespace.problem;
  return { name, namespace, isolation: exported.isolation };
}

/** With isolation None, references may be in any kind, otherwise only in exported kinds. */
const mayRefer = ({ group, resource }: GroupResource, { resources, isolation }: ExportView): boolean =>
  isolation === 'None' || resources.some((exported) => exported.group === group && exported.resource === resource);

type ClaimReference = NonNullable<PermissionClaim['selector']['references']>[number];

interface OpenReferrers extends Referrers {
  close(): void;
}

/** Opens the consumer's objects of a referring kind, or says why not and what to do. */
type OpenReferrersOf = (reference: ClaimReference) => OpenReferrers | string;

/** A bound kind shares the watch of its syncer; another (isolation None) gets its own. */
export function referrersOf(session: ProviderSession, exported: ExportView, deps: BindingDeps): OpenReferrersOf {
  return (reference) => {
    const { group, resource: plural, versions = [] } = reference;
    const isBound = exported.resources.some((bound) => bound.group === group && bound.resource === plural);
    if (!isBound) return unboundReferrers({ group, plural, version: versions[0] }, deps);
    const crd = boundSchemaName(reference);
    const schema = session.stores.schemas.get(keyOf({ namespace: session.clusterNamespace, name: crd }));
    const version = schema && syncVersion(schema, exported);
    if (!version) return 'none of its versions is synced; see the other problems of the binding';
    // An export may name any definition, including one that the binding does not own.
    const definition = deps.stores.crds.get(crd);
    const binding = deps.stores.bindings.get(exported.name);
    if (definition && binding && !isOwnedBy(definition.ownerReferences, binding)) {
      return 'the binding does not own its CustomResourceDefinition; see condition SchemaInSync of the binding';
    }
    const resource = consumerResource(schema, version.name);
    return new ConsumerObjects({ cluster: deps.consumer, crds: deps.stores.crds, crd, resource });
  };
}

function unboundReferrers(
  { group, plural, version }: { readonly group: string; readonly plural: string; readonly version: string | undefined },
  deps: BindingDeps,
): OpenReferrers | string {
  if (version === undefined) return `it is not bound and the claim names no version of it; ${correctClaim}`;
  const resource: Resource = { group, version, plural, kind: plural, namespaced: true };
  const { store, release } = deps.consumer.watch({
    resource,
    project: projectObject,
    optional: true,
    followsSchema: true,
  });
  return { unbound: true, subscribe: (listener) => store.subscribe(listener), close: release };
}

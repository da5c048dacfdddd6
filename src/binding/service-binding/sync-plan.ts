import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { claimableAnnotation } from '../../api/binding/names.ts';
import type { PermissionClaim } from '../../api/binding/permission-claim.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { quote } from '../../kit/errors.ts';
import type { Store } from '../../kube/store.ts';
import { claimable, claimableResources } from '../claims/claimable.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { type BindingView, type CrdView, mayBeServed } from '../stores/consumer-stores.ts';
import type { BoundSchemaView, ExportView } from '../stores/provider-stores.ts';
import { syncVersion } from '../sync/consumer-objects.ts';
import type { SyncMode } from '../sync-engine/syncer.ts';
import { isOwnedBy } from './owner.ts';
import { unbindPolicy } from './unbind-plan.ts';

/** An export, its binding, and lookups of schemas and CustomResourceDefinitions. */
export interface SyncFacts {
  readonly exported: ExportView;
  readonly binding: BindingView;
  /** The BoundSchema of that name; undefined if the store has none. */
  readonly schema: (name: string) => BoundSchemaView | undefined;
  /** The CustomResourceDefinition of that name; undefined if the store has none. */
  readonly crd: (name: string) => CrdView | undefined;
  /** Exported resources that bindings may bind into this cluster, as `<resource>.<group>`; undefined means any resource. */
  readonly bindable: readonly string[] | undefined;
}

/** Inputs of `syncFacts`; see `SyncFacts`. */
export interface SyncFactsInput {
  readonly exported: ExportView;
  readonly binding: BindingView;
  readonly session: ProviderSession;
  readonly crds: Store<CrdView>;
  readonly bindable: readonly string[] | undefined;
}

/** Builds the facts from the stores of both clusters. */
export function syncFacts({ exported, binding, session, crds, bindable }: SyncFactsInput): SyncFacts {
  const { clusterNamespace, stores } = session;
  return {
    exported,
    binding,
    bindable,
    schema: (name) => stores.schemas.get(`${clusterNamespace}/${name}`),
    crd: (name) => crds.get(name),
  };
}

/** A syncer of bound objects that should run. */
export interface PlannedSyncer {
  readonly schema: BoundSchemaView;
  readonly mode: SyncMode;
  /** Its inputs as canonical JSON. When they change, the export controller restarts the syncer. */
  readonly fingerprint: string;
}

/**
 * The mode of the binding's syncers. While the binding is being deleted: `drain` with policy Delete, `sync` with an unknown policy, and
 * undefined with policy Orphan, because no syncer may run.
 */
function modeOf(binding: BindingView): SyncMode | undefined {
  if (!binding.deleting) return 'sync';
  const policy = unbindPolicy(binding);
  if (policy === undefined) return 'sync';
  return policy === 'Delete' ? 'drain' : undefined;
}

/** The syncers that an export needs, by name of the BoundSchema. */
export function plannedSyncers(facts: SyncFacts): Map<string, PlannedSyncer> {
  const { exported, binding } = facts;
  const mode = modeOf(binding);
  const planned = new Map<string, PlannedSyncer>();
  if (!mode) return planned;
  for (const resource of exported.resources) {
    const name = boundSchemaName(resource);
    const schema = facts.schema(name);
    if (!schema || !canSync(facts, schema, name, mode)) continue;
    planned.set(name, { schema, mode, fingerprint: fingerprintOf(exported, schema, resource.versions, mode) });
  }
  return planned;
}

/**
 * Whether a syncer may run. The resource must be bindable. The binding must own the definition, and the definition must have the scope of
 * the schema (with another scope, the objects would have other keys) and must be one that the API server may serve. In mode `drain`, the
 * definition may also be missing, because copies may outlive it.
 */
function canSync(
  { binding, bindable, crd: crdOf }: SyncFacts,
  { scope }: BoundSchemaView,
  name: string,
  mode: SyncMode,
): boolean {
  if (bindable && !bindable.includes(name)) return false;
  const crd = crdOf(name);
  if (!crd) return mode === 'drain';
  return mayBeServed(crd) && crd.scope === scope && isOwnedBy(crd.ownerReferences, binding);
}

/** All inputs of a syncer as canonical JSON, except the OpenAPI schemas, which may change while the syncer runs. */
function fingerprintOf(
  { uid, isolation, informerScope }: ExportView,
  schema: BoundSchemaView,
  wantedVersions: readonly string[],
  mode: SyncMode,
): string {
  const { group, names, scope, versions } = schema;
  return canonicalJson({
    mode,
    export: [uid, isolation, informerScope],
    schema: [group, names.plural, names.kind, scope, schema.informerScope],
    wantedVersions,
    versions: versions.map(({ name, served, storage, subresources }) => [
      name,
      served,
      storage,
      subresources.status !== undefined,
    ]),
  });
}

/** The claims of an export to sync. */
export interface PlannedClaims {
  /** The export with only the accepted claims. */
  readonly exported: ExportView;
  readonly mode: SyncMode;
  /** Its inputs as canonical JSON. When they change, the export controller restarts the syncer. */
  readonly fingerprint: string;
}

/**
 * The claims that the binding accepts and that its status lists, so that nothing is shared before the status lists it. Undefined if there
 * are none, or if no syncer may run.
 */
export function plannedClaims(facts: SyncFacts): PlannedClaims | undefined {
  const { exported, binding } = facts;
  const reported = new Set(binding.permissionClaims.map((claim) => canonicalJson(claim)));
  const permissionClaims = judgeClaims(exported, binding).accepted.filter((claim) =>
    reported.has(canonicalJson(claim)),
  );
  const mode = modeOf(binding);
  if (mode === undefined || permissionClaims.length === 0) return undefined;
  const { uid, isolation, informerScope, resources } = exported;
  // The claims syncer reads references only in objects of kinds with a served definition, in their synced version.
  const served = resources.map(boundSchemaName).map((name) => {
    const crd = facts.crd(name);
    const schema = facts.schema(name);
    return [name, crd && mayBeServed(crd) && crd.uid, schema && syncVersion(schema, exported)?.name];
  });
  const fingerprint = canonicalJson({
    mode,
    permissionClaims,
    export: [uid, isolation, informerScope, resources],
    served,
  });
  return { exported: { ...exported, permissionClaims }, mode, fingerprint };
}

/** The claims of an export: those that the binding accepts, and those that no binding may accept. */
export interface JudgedClaims {
  readonly accepted: readonly PermissionClaim[];
  /** Resources that no provider may claim. Claims that only this binding's annotation excludes are not listed. */
  readonly refused: readonly string[];
  /** Why the binding's annotation is not valid. No claim is accepted then. */
  readonly problem?: string;
}

const claimableNames = claimableResources.map(({ plural }) => plural);

/**
 * Compares the claims with the binding's annotation {@link claimableAnnotation}. Without the annotation, the binding accepts every
 * claimable resource. If the annotation is not valid, the binding accepts no claim.
 */
export function judgeClaims({ permissionClaims }: ExportView, { annotations }: BindingView): JudgedClaims {
  const allowedNames =
    annotations[claimableAnnotation]?.split(',').flatMap((name) => name.trim() || []) ?? claimableNames;
  const unknownName = allowedNames.find((name) => !claimableNames.includes(name));
  const accepted = permissionClaims.filter((claim) => allowedNames.includes(claimable(claim)?.plural ?? ''));
  const refused = permissionClaims.filter((claim) => !claimable(claim)).map(boundSchemaName);
  if (unknownName === undefined) return { accepted, refused };
  const problem = `the annotation ${claimableAnnotation} names ${quote(unknownName)}, so no claim of the provider is accepted; allowed is a comma-separated list, which may be empty, of ${claimableNames.join(', ')}; correct or remove the annotation`;
  return { accepted: [], refused, problem };
}

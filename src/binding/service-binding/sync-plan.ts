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

export interface SyncFacts {
  readonly exported: ExportView;
  readonly binding: BindingView;
  readonly session: ProviderSession;
  readonly crds: Store<CrdView>;
  readonly bindable: readonly string[] | undefined;
}

export interface PlannedSyncer {
  readonly schema: BoundSchemaView;
  readonly mode: SyncMode;
  /** Canonical JSON of its inputs; a change restarts the syncer. */
  readonly fingerprint: string;
}

/** With policy Orphan, no syncer may run. With an unknown policy, they run on. */
function modeOf(binding: BindingView): SyncMode | undefined {
  if (!binding.deleting) return 'sync';
  const policy = unbindPolicy(binding);
  if (policy === undefined) return 'sync';
  return policy === 'Delete' ? 'drain' : undefined;
}

/** By name of the BoundSchema. */
export function plannedSyncers(facts: SyncFacts): Map<string, PlannedSyncer> {
  const { exported, binding } = facts;
  const mode = modeOf(binding);
  const planned = new Map<string, PlannedSyncer>();
  if (!mode) return planned;
  for (const resource of exported.resources) {
    const name = boundSchemaName(resource);
    const schema = schemaOf(facts, name);
    if (!schema || !canSync(facts, schema, name, mode)) continue;
    planned.set(name, { schema, mode, fingerprint: fingerprintOf(exported, schema, resource.versions, mode) });
  }
  return planned;
}

const schemaOf = ({ session: { clusterNamespace, stores } }: SyncFacts, name: string): BoundSchemaView | undefined =>
  stores.schemas.get(`${clusterNamespace}/${name}`);

/**
 * The CRD may be served, and has this owner and the scope of the schema (with another, keys would
 * differ). In mode `drain` it may be gone, because copies may outlive it.
 */
function canSync(
  { binding, bindable, crds }: SyncFacts,
  { scope }: BoundSchemaView,
  name: string,
  mode: SyncMode,
): boolean {
  if (bindable && !bindable.includes(name)) return false;
  const crd = crds.get(name);
  if (!crd) return mode === 'drain';
  return mayBeServed(crd) && crd.scope === scope && isOwnedBy(crd.ownerReferences, binding);
}

/** Without the OpenAPI schemas, which may change while the syncer runs. */
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

export interface PlannedClaims {
  /** With only the accepted claims. */
  readonly exported: ExportView;
  readonly mode: SyncMode;
  readonly fingerprint: string;
}

/** Only accepted claims that the status lists already, so that nothing is shared before. */
export function plannedClaims(facts: SyncFacts): PlannedClaims | undefined {
  const { exported, binding } = facts;
  const reported = new Set(binding.permissionClaims.map((claim) => canonicalJson(claim)));
  const permissionClaims = judgeClaims(exported, binding).accepted.filter((claim) =>
    reported.has(canonicalJson(claim)),
  );
  const mode = modeOf(binding);
  if (mode === undefined || permissionClaims.length === 0) return undefined;
  const { uid, isolation, informerScope, resources } = exported;
  // References are read only in objects of served kinds, in their synced version.
  const served = resources.map(boundSchemaName).map((name) => {
    const crd = facts.crds.get(name);
    const schema = schemaOf(facts, name);
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

export interface JudgedClaims {
  readonly accepted: readonly PermissionClaim[];
  /** Resources that no provider may claim; not what only the annotation excludes. */
  readonly refused: readonly string[];
  /** The binding's annotation is not valid, so no claim is accepted. */
  readonly problem?: string;
}

const claimableNames = claimableResources.map(({ plural }) => plural);

/** By the annotation {@link claimableAnnotation}; without it, all claimable resources. */
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

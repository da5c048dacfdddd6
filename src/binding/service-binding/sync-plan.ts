import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { claimableAnnotation } from '../../api/binding/names.ts';
import type { PermissionClaim } from '../../api/binding/permission-claim.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { quote } from '../../kit/errors.ts';
import type { Store } from '../../kube/store.ts';
import { claimable, claimableResources } from '../claims/claimable.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BindingView, CrdView } from '../stores/consumer-stores.ts';
import type { BoundSchemaView, ExportView } from '../stores/provider-stores.ts';
import { syncVersion } from '../sync/consumer-objects.ts';
import type { SyncMode } from '../sync-engine/kind.ts';
import { isOwnedBy } from './owner.ts';
import { unbindPolicy } from './unbind-plan.ts';

/** An export, the binding that it serves, and where to find the rest. */
export interface SyncFacts {
  readonly exported: ExportView;
  readonly binding: BindingView;
  readonly schema: (name: string) => BoundSchemaView | undefined;
  readonly crd: (name: string) => CrdView | undefined;
  /** What may be bound, as `<resource>.<group>`; undefined means anything. */
  readonly allowed: readonly string[] | undefined;
}

export interface SyncParts {
  readonly exported: ExportView;
  readonly binding: BindingView;
  readonly session: ProviderSession;
  readonly crds: Store<CrdView>;
  readonly allowed: readonly string[] | undefined;
}

/** The rest is in the stores of both clusters. */
export function syncFacts({ exported, binding, session, crds, allowed }: SyncParts): SyncFacts {
  const { clusterNamespace, stores } = session;
  return {
    exported,
    binding,
    allowed,
    schema: (name) => stores.schemas.get(`${clusterNamespace}/${name}`),
    crd: (name) => crds.get(name),
  };
}

export interface PlannedSyncer {
  readonly schema: BoundSchemaView;
  readonly mode: SyncMode;
  /** What it depends on; when that changes it is stopped and another one started. */
  readonly fingerprint: string;
}

/**
 * What is to work on the objects of an export. Undefined when nothing is: the binding goes and the copies are to stay, or how it is
 * to go is not said yet.
 */
function modeOf(binding: BindingView): SyncMode | undefined {
  if (!binding.deleting) return 'sync';
  const policy = unbindPolicy(binding);
  if (policy === undefined) return 'sync';
  return policy === 'Delete' ? 'drain' : undefined;
}

/** The syncers that an export needs, by the name of the BoundSchema. */
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
 * Objects of definitions that are not ours are none of our business, and there is nothing to watch before they are served. Copies may
 * be left when their definition is gone. A definition that could not follow its schema to another scope has objects under other names.
 */
function canSync(
  { binding, allowed, crd: crdOf }: SyncFacts,
  { scope }: BoundSchemaView,
  name: string,
  mode: SyncMode,
): boolean {
  if (allowed && !allowed.includes(name)) return false;
  const crd = crdOf(name);
  if (!crd) return mode === 'drain';
  return crd.established && crd.scope === scope && isOwnedBy(crd.ownerReferences, binding);
}

/** Everything but the schemas themselves, which may change under a running syncer. */
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

/** What of an export's claims is shared now; undefined when nothing is. */
export interface PlannedClaims {
  /** With the claims that are honoured and no others. */
  readonly exported: ExportView;
  readonly mode: SyncMode;
  readonly fingerprint: string;
}

/** The claims that the provider makes, that the binding allows, and that it says are honoured, so that nothing is shared before it is told. */
export function plannedClaims(facts: SyncFacts): PlannedClaims | undefined {
  const { exported, binding } = facts;
  const told = new Set(binding.permissionClaims.map((claim) => canonicalJson(claim)));
  const permissionClaims = judgeClaims(exported, binding).accepted.filter((claim) => told.has(canonicalJson(claim)));
  const mode = modeOf(binding);
  if (mode === undefined || permissionClaims.length === 0) return undefined;
  const { uid, isolation, informerScope, resources } = exported;
  // References can be followed only through kinds that are served, and in the version that is.
  const served = resources.map(boundSchemaName).map((name) => {
    const [crd, schema] = [facts.crd(name), facts.schema(name)];
    return [name, crd?.established && crd.uid, schema && syncVersion(schema, exported)?.name];
  });
  const fingerprint = canonicalJson({
    mode,
    permissionClaims,
    export: [uid, isolation, informerScope, resources],
    served,
  });
  return { exported: { ...exported, permissionClaims }, mode, fingerprint };
}

/** What a binding makes of the claims of its export. */
export interface JudgedClaims {
  readonly accepted: readonly PermissionClaim[];
  /** Names of what may be claimed nowhere. What the binding itself does not allow is no fault of the claim. */
  readonly refused: readonly string[];
  /** What is wrong with the binding's own list; nothing is accepted then. */
  readonly problem?: string;
}

const all = claimableResources.map(({ plural }) => plural);

export function judgeClaims({ permissionClaims }: ExportView, { annotations }: BindingView): JudgedClaims {
  const allowed = annotations[claimableAnnotation]?.split(',').flatMap((name) => name.trim() || []) ?? all;
  const odd = allowed.find((name) => !all.includes(name));
  const accepted = permissionClaims.filter((claim) => allowed.includes(claimable(claim)?.plural ?? ''));
  const refused = permissionClaims.filter((claim) => !claimable(claim)).map(boundSchemaName);
  if (odd === undefined) return { accepted, refused };
  const problem = `the annotation ${claimableAnnotation} names ${quote(odd)}, so nothing that the provider claims is shared; it takes a list, which may be empty, of ${all.join(', ')}`;
  return { accepted: [], refused, problem };
}

import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { acceptedClaims } from '../service-binding/accepted-claims.ts';
import { isOwnedBy } from '../service-binding/owner.ts';
import { unbindPolicy } from '../service-binding/unbind-plan.ts';
import type { BindingView, BoundSchemaView, CrdView, ExportView } from '../stores/views.ts';
import type { SyncMode } from '../sync/syncer.ts';

/** An export, the binding that it serves, and where to find the rest. */
export interface SyncFacts {
  readonly exported: ExportView;
  readonly binding: BindingView;
  readonly schema: (name: string) => BoundSchemaView | undefined;
  readonly crd: (name: string) => CrdView | undefined;
  /** What may be bound, as `<resource>.<group>`; undefined means anything. */
  readonly allowed?: readonly string[] | undefined;
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
    const crd = facts.crd(name);
    if (!schema || !crd || !canSync(facts, name, crd)) continue;
    planned.set(name, { schema, mode, fingerprint: fingerprintOf(exported, schema, crd, resource.versions, mode) });
  }
  return planned;
}

/** Objects of definitions that are not ours are none of our business, and there is nothing to watch before they are served. */
function canSync({ binding, allowed }: SyncFacts, name: string, crd: CrdView): boolean {
  return crd.established && isOwnedBy(crd.ownerReferences, binding) && (!allowed || allowed.includes(name));
}

/** Everything but the schemas themselves, which may change under a running syncer. */
function fingerprintOf(
  { uid, isolation, informerScope }: ExportView,
  schema: BoundSchemaView,
  crd: CrdView,
  wantedVersions: readonly string[],
  mode: SyncMode,
): string {
  const { group, names, scope, versions } = schema;
  return canonicalJson({
    mode,
    export: [uid, isolation, informerScope],
    crd: crd.uid,
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
  readonly fingerprint: string;
}

/** The claims that the provider makes and that the binding says are honoured, so that nothing is shared before it is told. */
export function plannedClaims(facts: SyncFacts): PlannedClaims | undefined {
  const { exported, binding } = facts;
  const told = new Set(binding.permissionClaims.map((claim) => canonicalJson(claim)));
  const permissionClaims = acceptedClaims(exported).filter((claim) => told.has(canonicalJson(claim)));
  if (modeOf(binding) === undefined || permissionClaims.length === 0) return undefined;
  const { uid, isolation, informerScope, resources } = exported;
  // References can be followed only through kinds that are served.
  const served = resources
    .map(boundSchemaName)
    .map((name) => [name, facts.crd(name)?.established && facts.crd(name)?.uid]);
  const fingerprint = canonicalJson({ permissionClaims, export: [uid, isolation, informerScope, resources], served });
  return { exported: { ...exported, permissionClaims }, fingerprint };
}

import { boundSchemaName } from '../../api/binding/group-resource.ts';
import type { Resource } from '../../api/object.ts';
import type { BindingDeps } from '../deps.ts';
import { isOwnedBy } from '../service-binding/owner.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import type { Syncer, SyncMode } from '../sync-engine/syncer.ts';
import { claimable, claimableResources } from './claimable.ts';
import { openClaimedKind } from './claimed-kind.ts';
import { openReferences, referrersOf } from './open-references.ts';
import { claimSelector } from './selector.ts';
import { openUsedNamespaces } from './used-namespaces.ts';

export interface ClaimsOptions {
  readonly session: ProviderSession;
  /** After a change of its claims or resources, the caller opens a new syncer. */
  readonly exported: ExportView;
  /**
   * `drain`: once the bound objects are deleted, copies are, too, except of kinds that another
   * binding with perhaps the same provider claims. Default `sync`.
   */
  readonly mode?: SyncMode;
  /** True while the provider of that binding is not known. */
  readonly mayShareProvider: (binding: BindingView) => boolean;
  /** What the syncer reports may have changed. */
  readonly onChange?: () => void;
  readonly random?: () => number;
}

/** How long a binding waits for the deletion of copies. */
const drainMs = 60_000;

/**
 * Syncs the objects that one export claims, with one controller a kind; they get no finalizer.
 * While the binding is deleted, `remaining()` counts copies for at most a minute after the bound
 * objects are gone. Those that remain then stay. Events are handled once the controllers run.
 */
export function openClaims(options: ClaimsOptions, deps: BindingDeps): Syncer {
  const { session, exported, mode = 'sync', random = Math.random, onChange } = options;
  const claims = exported.permissionClaims;
  const claimProblems: string[] = [];
  const usedNamespaces = openUsedNamespaces(session, exported, deps);
  const mayDelete = mode === 'drain' && areDefinitionsDeleted(exported, deps);
  const open = (resource: Resource): Syncer[] => {
    const kindClaims = claims.filter((claim) => claimable(claim) === resource);
    const references = openReferences(kindClaims, exported, referrersOf(session, exported, deps));
    const selector = claimSelector(kindClaims, references.isEmpty ? undefined : references.index);
    claimProblems.push(...selector.problems, ...references.problems);
    if (selector.isEmpty || (mode === 'drain' && isClaimedByAnother(options, resource, deps))) {
      references.close();
      return [];
    }
    const kind = {
      session,
      exported,
      resource,
      selector,
      references,
      usedNamespaces,
      mode,
      mayDelete,
      random,
      onChange,
    };
    return [openClaimedKind(kind, deps)];
  };
  const kinds = claimableResources.flatMap(open);
  const forEachKind = (callback: (kind: Syncer) => void): void => {
    for (const kind of kinds) callback(kind);
  };
  const copiesLeft = (): number => (mode === 'drain' ? sum(kinds.map((kind) => kind.remaining())) : 0);
  let hasTimedOut = false;
  const stopWaiting = mayDelete
    ? deps.clock.schedule(drainMs, () => {
        const copies = copiesLeft();
        hasTimedOut = true;
        if (copies > 0)
          deps.log.warn('the unbinding no longer waits for the copies of claimed objects; they stay where they are', {
            export: exported.name,
            copies,
          });
        onChange?.();
      })
    : undefined;
  return {
    controllers: kinds.flatMap(({ controllers }) => controllers),
    resync: () => forEachKind((kind) => kind.resync()),
    allowDeletes: () => forEachKind((kind) => kind.allowDeletes()),
    // While bound objects exist, the unbinding waits for their syncers.
    remaining: () => (hasTimedOut || !areDefinitionsDeleted(exported, deps) ? 0 : copiesLeft()),
    problems: () => [...claimProblems, ...kinds.flatMap((kind) => kind.problems())],
    refusedWatches: () => kinds.flatMap((kind) => kind.refusedWatches()),
    served: () => true,
    close() {
      stopWaiting?.();
      forEachKind((kind) => kind.close());
      usedNamespaces.close();
    },
  };
}

/** Whether the binding owns no CRD of the export any more, so that its bound objects are gone. */
function areDefinitionsDeleted({ name, resources }: ExportView, { stores }: BindingDeps): boolean {
  const binding = stores.bindings.get(name);
  return resources.every((resource) => {
    const crd = stores.crds.get(boundSchemaName(resource));
    return !crd || !binding || !isOwnedBy(crd.ownerReferences, binding);
  });
}

/** Through any Secret, by a binding that is not being deleted. */
function isClaimedByAnother(
  { exported, mayShareProvider }: ClaimsOptions,
  { group, plural }: Resource,
  { stores }: BindingDeps,
): boolean {
  return [...stores.bindings.list()].some(
    (other) =>
      other.name !== exported.name &&
      !other.deleting &&
      other.permissionClaims.some((claim) => claim.group === group && claim.resource === plural) &&
      mayShareProvider(other),
  );
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

import { apiServiceBindings, apiServiceExports } from '../../api/binding/names.ts';
import { keyOf, type ObjectName, type Resource } from '../../api/object.ts';
import type { Client } from '../../kube/client.ts';
import { isObjectNotFound } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { BindingDeps } from '../deps.ts';
import type { ProviderSession, SessionLookup, Sessions } from '../sessions/provider-session.ts';
import type { BindingView, CrdView } from '../stores/consumer-stores.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import type { BindingFacts } from './binding-conditions.ts';
import type { BindingWriter } from './binding-writer.ts';
import type { CrdWriter } from './crd-writer.ts';
import { isOwnedBy, owningBindings } from './owner.ts';
import type { Releaser } from './releaser.ts';
import type { RunningSyncers } from './running-syncers.ts';

/** Dependencies of the binding reconciler, the binder, and the unbinder. */
export interface BindingReconcilerDeps extends BindingDeps {
  readonly sessions: Sessions;
  readonly syncers: RunningSyncers;
  /** Exported resources that bindings may bind into this cluster, as `<resource>.<group>`; undefined means any resource. */
  readonly bindable?: readonly string[] | undefined;
  readonly writer: BindingWriter;
  readonly crdWriter: CrdWriter;
  readonly releaser: Releaser;
}

/** The result of looking up the session of a binding. */
export interface BoundSession {
  readonly lookup: SessionLookup;
  /** The session that serves the binding; undefined if the Secret is unusable and no earlier session still serves. */
  readonly session: ProviderSession | undefined;
}

/** Facts from local caches. Callers add `exportFacts` or `unbindProgress`. The binder also sets `settled`. */
export function bindingFacts(
  { sessions, syncers, clock }: Pick<BindingReconcilerDeps, 'sessions' | 'syncers' | 'clock'>,
  binding: BindingView,
  { lookup, session }: BoundSession,
  added: Partial<Pick<BindingFacts, 'exportFacts' | 'unbindProgress'>>,
): BindingFacts {
  return {
    binding,
    lookup,
    state: session?.state,
    heartbeat: session && sessions.heartbeat(session),
    problems: syncers.problemsOf(binding.name),
    refusedWatches: [...(session?.refusedWatches() ?? []), ...syncers.refusedWatchesOf(binding.name)],
    exportFacts: undefined,
    settled: true,
    unbindProgress: undefined,
    nowMs: clock.now(),
    ...added,
  };
}

/** The CustomResourceDefinitions that the binding owns. */
export function ownedCrds(crds: Store<CrdView>, binding: BindingView): CrdView[] {
  return [...crds.list()].filter(({ ownerReferences }) => isOwnedBy(ownerReferences, binding));
}

/**
 * The CustomResourceDefinitions in the store whose owner is a binding with this name, but another uid than `binding`: their owner was
 * deleted, and perhaps created again. No new syncer starts for their objects, but an earlier one may still run.
 */
export function abandonedCrds(crds: Store<CrdView>, name: string, binding: BindingView | undefined): CrdView[] {
  return [...crds.list()].filter(
    ({ ownerReferences }) =>
      owningBindings(ownerReferences).includes(name) && !(binding && isOwnedBy(ownerReferences, binding)),
  );
}

/** The export in the store of the session; undefined if the store has none, which does not prove that the export does not exist. */
export function exportOf({ stores, clusterNamespace }: ProviderSession, name: string): ExportView | undefined {
  return stores.exports.get(`${clusterNamespace}/${name}`);
}

/** Whether the export does not exist. If the store lacks it, a live read decides. Rejects as `liveUid` does. */
export async function isExportAbsent(session: ProviderSession, name: string, signal: AbortSignal): Promise<boolean> {
  const { client, clusterNamespace: namespace } = session;
  if (exportOf(session, name)) return false;
  return (await liveUid(client, apiServiceExports, { namespace, name }, signal)) === undefined;
}

/**
 * Of `crds`, those that the binding `name` does not own. Reads the binding live, because the store may be stale. Rejects as `liveUid`
 * does.
 */
export async function crdsNotOwnedBy(
  client: Client,
  name: string,
  crds: readonly CrdView[],
  signal: AbortSignal,
): Promise<CrdView[]> {
  if (crds.length === 0) return [];
  const uid = await liveUid(client, apiServiceBindings, { name }, signal);
  return crds.filter(({ ownerReferences }) => uid === undefined || !isOwnedBy(ownerReferences, { name, uid }));
}

/**
 * The uid of the object, from a live read; undefined if the object does not exist. Rejects with other errors of the read, also if the kind
 * is not served, because that does not prove that the object does not exist. Also rejects if the answer has no uid.
 */
async function liveUid(
  client: Client,
  resource: Resource,
  name: ObjectName,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const { metadata } = await client.get(resource, name, { signal });
    if (metadata.uid === undefined)
      throw new Error(`the API server returned ${resource.kind} ${keyOf(name)} without a UID`);
    return metadata.uid;
  } catch (error) {
    if (isObjectNotFound(error)) return undefined;
    throw error;
  }
}

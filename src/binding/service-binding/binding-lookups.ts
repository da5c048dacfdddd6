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

export interface BindingReconcilerDeps extends BindingDeps {
  readonly sessions: Sessions;
  readonly syncers: RunningSyncers;
  readonly bindable?: readonly string[] | undefined;
  readonly writer: BindingWriter;
  readonly crdWriter: CrdWriter;
  readonly releaser: Releaser;
}

export interface BoundSession {
  readonly lookup: SessionLookup;
  /** An earlier session may still serve while the Secret is unusable. */
  readonly session: ProviderSession | undefined;
}

/** From caches. Callers add `exportFacts` or `unbindProgress`. */
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
    unbindProgress: undefined,
    nowMs: clock.now(),
    ...added,
  };
}

export function ownedCrds(crds: Store<CrdView>, binding: BindingView): CrdView[] {
  return [...crds.list()].filter(({ ownerReferences }) => isOwnedBy(ownerReferences, binding));
}

/** Of an earlier binding with this name. An earlier syncer may still run for their objects. */
export function abandonedCrds(crds: Store<CrdView>, name: string, binding: BindingView | undefined): CrdView[] {
  return [...crds.list()].filter(
    ({ ownerReferences }) =>
      owningBindings(ownerReferences).includes(name) && !(binding && isOwnedBy(ownerReferences, binding)),
  );
}

/** The store may lack an export that exists. */
export function exportOf({ stores, clusterNamespace }: ProviderSession, name: string): ExportView | undefined {
  return stores.exports.get(`${clusterNamespace}/${name}`);
}

/** If the store lacks it, a live read decides. Rejects as `liveUid` does. */
export async function isExportAbsent(session: ProviderSession, name: string, signal: AbortSignal): Promise<boolean> {
  const { client, clusterNamespace: namespace } = session;
  if (exportOf(session, name)) return false;
  return (await liveUid(client, apiServiceExports, { namespace, name }, signal)) === undefined;
}

/** Reads the binding live, because the store may be stale. Rejects as `liveUid` does. */
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

/** Undefined only if the object certainly does not exist, not if the kind is not served. */
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

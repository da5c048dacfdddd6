import { apiServiceBindings, apiServiceExports } from '../../api/binding/names.ts';
import type { ObjectName, Resource } from '../../api/object.ts';
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

/** Dependencies of the binder and the unbinder. */
export interface BindingParts extends BindingDeps {
  readonly sessions: Sessions;
  readonly syncers: RunningSyncers;
  /** Resources that providers may bind, as `<resource>.<group>`; undefined means any. */
  readonly bindable?: readonly string[] | undefined;
  readonly writer: BindingWriter;
  readonly crdWriter: CrdWriter;
  readonly releaser: Releaser;
}

/** The provider of a binding. */
export interface Provider {
  readonly lookup: SessionLookup;
  /** The session that serves the binding; undefined without one. */
  readonly session: ProviderSession | undefined;
}

/** Facts from local caches. Callers add `exportFacts` or `unbindProgress`. */
export function bindingFacts(
  { sessions, syncers, clock }: BindingParts,
  binding: BindingView,
  { lookup, session }: Provider,
  more: Partial<Pick<BindingFacts, 'exportFacts' | 'unbindProgress'>>,
): BindingFacts {
  return {
    binding,
    lookup,
    state: session?.state,
    heartbeat: session && sessions.heartbeat(session),
    problems: syncers.problemsOf(binding.name),
    exportFacts: undefined,
    settled: true,
    unbindProgress: undefined,
    nowMs: clock.now(),
    ...more,
  };
}

/** The CustomResourceDefinitions that the binding owns. */
export function crdsOf(crds: Store<CrdView>, binding: BindingView): CrdView[] {
  return [...crds.list()].filter(({ ownerReferences }) => isOwnedBy(ownerReferences, binding));
}

/**
 * The CustomResourceDefinitions of an earlier or deleted binding of this name, by the store. No new syncer starts for their objects, but an
 * old one may still run.
 */
export function abandonedCrds(crds: Store<CrdView>, name: string, binding: BindingView | undefined): CrdView[] {
  return [...crds.list()].filter(
    ({ ownerReferences }) =>
      owningBindings(ownerReferences).includes(name) && !(binding && isOwnedBy(ownerReferences, binding)),
  );
}

export function exportOf({ stores, clusterNamespace }: ProviderSession, name: string): ExportView | undefined {
  return stores.exports.get(`${clusterNamespace}/${name}`);
}

/** Whether the export is neither in the store nor found by a live read. Rejects if the read fails for another reason. */
export async function isExportAbsent(session: ProviderSession, name: string, signal: AbortSignal): Promise<boolean> {
  const { client, clusterNamespace: namespace } = session;
  if (exportOf(session, name)) return false;
  return (await liveUid(client, apiServiceExports, { namespace, name }, signal)) === undefined;
}

/** The CustomResourceDefinitions that no binding of that name owns. Reads the binding live, because the store may be stale. */
export async function crdsWithoutOwner(
  client: Client,
  name: string,
  crds: readonly CrdView[],
  signal: AbortSignal,
): Promise<CrdView[]> {
  if (crds.length === 0) return [];
  const uid = await liveUid(client, apiServiceBindings, { name }, signal);
  return crds.filter(({ ownerReferences }) => uid === undefined || !isOwnedBy(ownerReferences, { name, uid }));
}

/** Undefined if the object does not exist. Rejects if the kind is not served, which proves nothing about its objects. */
async function liveUid(
  client: Client,
  resource: Resource,
  name: ObjectName,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const { metadata } = await client.get(resource, name, { signal });
    return metadata.uid ?? '';
  } catch (error) {
    if (isObjectNotFound(error)) return undefined;
    throw error;
  }
}

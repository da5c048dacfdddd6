import { componentLabel, componentReconcilers, reconcileRuns, runName } from '../api/inventory/names.ts';
import { type ReconcileRun, reconcileRunKind } from '../api/inventory/reconcile-run.ts';
import type { KubeObject } from '../api/object.ts';
import { readObject } from '../api/schema/kind.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';
import { listIn, own } from '../kit/json-value.ts';
import { type Client, findObject } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Store } from '../kube/store.ts';
import type { EntryRef } from './entry.ts';
import { maxNamedEntries, type RegistrationPaths, writesOf } from './policy/registration-rules.ts';
import { type RegistrationView, registrationView } from './stores/registration-view.ts';

/** The reads of the inventory webhooks, and their stores, for readiness. */
export function openAdmissionReads(cluster: Pick<Cluster, 'client' | 'watch'>) {
  const registrationStore: Store<RegistrationView> = cluster.watch({
    resource: componentReconcilers,
    project: registrationView,
  }).store;
  const { client } = cluster;
  const reads = {
    /** Read live; undefined if there is none or it is invalid. */
    async latestRun(entry: EntryRef, component: string, signal: AbortSignal): Promise<ReconcileRun | undefined> {
      const { namespace, uid } = entry;
      const run = await latestRun(client, { namespace, name: runName(entry, component) }, signal);
      return run?.spec.entry.uid === uid ? run : undefined;
    },
    /** Paths that a component owns, from the store or live; undefined if invalid. */
    async writesOf(component: string, signal: AbortSignal): Promise<readonly JsonPointer[] | undefined> {
      const registration = registrationStore.get(component) ?? (await liveRegistration(client, component, signal));
      return registration && writesOf(component, registration.spec);
    },
    async registrations(signal: AbortSignal): Promise<readonly RegistrationPaths[]> {
      const { items } = await client.list(componentReconcilers, { signal });
      return items.flatMap((item) => pathsOf(item) ?? []);
    },
    /** Valid registrations in the store, which may lag behind the API server. */
    registered: () => [...registrationStore.list()].map(({ registration }) => registration),
    entriesOf: (component: string, signal: AbortSignal) => entriesOf(client, component, signal),
  };
  return { reads, stores: [registrationStore] };
}

/** Without a resourceVersion, the API server reads the stored version, not its cache. */
async function latestRun(
  client: Client,
  name: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<ReconcileRun | undefined> {
  const found = await findObject(client, reconcileRuns, name, { signal });
  const read = found && readObject(reconcileRunKind, found);
  return read?.ok ? read.value : undefined;
}

async function liveRegistration(
  client: Client,
  name: string,
  signal: AbortSignal,
): Promise<RegistrationPaths | undefined> {
  const found = await findObject(client, componentReconcilers, { name }, { signal });
  return found && pathsOf(found);
}

/** `NAMESPACE/NAME` of entries with a record of the component; up to `maxNamedEntries` + 1. */
async function entriesOf(client: Client, component: string, signal: AbortSignal): Promise<readonly string[]> {
  const { group, version, plural } = reconcileRuns;
  const limit = String(maxNamedEntries + 1);
  const query = new URLSearchParams({ labelSelector: `${componentLabel}=${component}`, limit });
  const page = await client.raw(`/apis/${group}/${version}/${plural}?${query}`, { signal });
  return listIn(page, 'items').map((run) => {
    const entry = own(own(own(run, 'spec'), 'entry'), 'name');
    return `${own(own(run, 'metadata'), 'namespace')}/${entry}`;
  });
}

function pathsOf(object: KubeObject): RegistrationPaths | undefined {
  const view = registrationView(object);
  return view && { name: view.key, spec: view.spec };
}

import { componentLabel, componentReconcilers, reconcileRuns, runName } from '../api/inventory/names.ts';
import { type ReconcileRun, readReconcileRun } from '../api/inventory/reconcile-run.ts';
import { type KubeObject, keyOf } from '../api/object.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';
import { isRecord, listIn, own } from '../kit/json-value.ts';
import { type Client, findObject } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Store } from '../kube/store.ts';
import { type RegistrationPaths, writesOf } from './policy/registration-rules.ts';
import { type RegistrationView, registrationView } from './stores/registration-view.ts';

/** Reads for the inventory webhooks, which reject like the client of kube/, and the stores that must be synced before they serve. */
export function openAdmissionReads(cluster: Pick<Cluster, 'client' | 'watch'>) {
  const registered: Store<RegistrationView> = cluster.watch({
    resource: componentReconcilers,
    project: registrationView,
  }).store;
  const { client } = cluster;
  const reads = {
    latestRun: (namespace: string, entryUid: string, component: string, signal: AbortSignal) =>
      latestRun(client, { namespace, name: runName(entryUid, component) }, signal),
    /** Paths that a component owns; undefined if it is not registered or invalid. Reads live if the store lacks the registration. */
    async writesOf(component: string, signal: AbortSignal): Promise<readonly JsonPointer[] | undefined> {
      const registration = registered.get(component) ?? (await liveRegistration(client, component, signal));
      return registration && writesOf(component, registration.spec);
    },
    async registrations(signal: AbortSignal): Promise<readonly RegistrationPaths[]> {
      const { items } = await client.list(componentReconcilers, { signal });
      return items.flatMap((item) => pathsOf(item) ?? []);
    },
    anyRunOf: (component: string, signal: AbortSignal) => anyRunOf(client, component, signal),
  };
  return { reads, stores: [registered] };
}

/**
 * The latest record; undefined if there is none or it is invalid. A get without resourceVersion returns the latest stored version, not an
 * older one from a cache of the API server.
 */
async function latestRun(
  client: Client,
  name: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<ReconcileRun | undefined> {
  const found = await findObject(client, reconcileRuns, name, { signal });
  const read = found && readReconcileRun(found);
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

/** `namespace/name` of any run record with the label of the component; undefined if there is none. */
async function anyRunOf(client: Client, component: string, signal: AbortSignal): Promise<string | undefined> {
  const { group, version, plural } = reconcileRuns;
  const query = new URLSearchParams({ labelSelector: `${componentLabel}=${component}`, limit: '1' });
  const page = await client.raw(`/apis/${group}/${version}/${plural}?${query}`, { signal });
  const metadata = own(listIn(page, 'items')[0], 'metadata');
  return isRecord(metadata)
    ? keyOf({ namespace: String(metadata['namespace']), name: String(metadata['name']) })
    : undefined;
}

function pathsOf(object: KubeObject): RegistrationPaths | undefined {
  const view = registrationView(object);
  return view && { name: view.key, spec: view.spec };
}

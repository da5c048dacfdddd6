import type { RequestListener } from 'node:http';
import { clusterInventories, componentReconcilers, managerAccount, reconcileRuns } from '../api/inventory/names.ts';
import type { Journal } from '../audit/journal.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Credentials } from '../kube/credentials.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { DryRunProof } from './accounts/dry-run-proof.ts';
import { EntryAccounts } from './accounts/entry-accounts.ts';
import { RunTokens, tokenReader } from './accounts/tokens.ts';
import { referenceComponents } from './components/reference-components.ts';
import { callbackListener } from './http/callbacks.ts';
import { HttpClient } from './http/http-client.ts';
import { InventoryManager } from './manager/inventory-manager.ts';
import { Registrations } from './manager/registrations.ts';
import type { ComponentClient } from './ports.ts';
import { RemoteHub } from './remote/hub.ts';
import { httpTransports } from './sdk/http-transports.ts';
import { inProcessClient } from './sdk/in-process-client.ts';
import { entryView, KubeInventoryStore } from './stores/kube-inventory-store.ts';
import { KubeRunStore, runView } from './stores/kube-run-store.ts';
import { registrationView } from './stores/registration-view.ts';

/** What every part of the inventory half is given. */
interface InventoryDeps {
  /** The cluster that holds the inventory, for watches and live reads. */
  readonly cluster: Cluster;
  /** Writes to it, and tokens: only while this process leads. */
  readonly client: Client;
  readonly events: EventRecorder;
  readonly journal: Journal;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Opens the managed clusters that are watched, from their kubeconfigs. */
  readonly connect: (credentials: Credentials) => Cluster;
  /** The same cluster with this token and nothing else. */
  readonly clientWith: (token: string) => { readonly client: Client; close(): Promise<void> };
  /** The API server as components reach it: part of every request, and what they compare it with. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a slash at the end. */
  readonly callbackUrl: string;
  /** Namespace of the account that calls to components come from. */
  readonly homeNamespace: string;
  readonly allowLoopbackHttp: boolean;
}

interface OpenInventory {
  readonly manager: InventoryManager;
  /** Takes the reports of runs. */
  readonly callbacks: RequestListener;
  /** What has to be listed before anything can be done. */
  readonly stores: readonly Store<Projected>[];
  close(): Promise<void>;
}

/** The manager over the API server, with everything that it needs. */
export function openInventory(deps: InventoryDeps): OpenInventory {
  const { cluster, client, clock, random, log, metrics, events, api, callbackUrl, homeNamespace } = deps;
  let manager: InventoryManager | undefined;
  const relisted = (): void => manager?.relisted();
  const entryStore = cluster.watch({ resource: clusterInventories, project: entryView, relisted }).store;
  const runStore = cluster.watch({ resource: reconcileRuns, project: runView, relisted }).store;
  const registrationStore = cluster.watch({
    resource: componentReconcilers,
    project: registrationView,
    relisted,
  }).store;
  const entries = new KubeInventoryStore(client, entryStore);
  const runs = new KubeRunStore(client, runStore, entries, clock);
  const registrations = new Registrations(registrationStore);
  const access = new EntryAccounts({ client, events, clock });
  const tokens = new RunTokens({ client, accounts: access, homeNamespace, clock });
  const remote = new RemoteHub({ cluster, client, connect: deps.connect, clock, random, metrics });
  const http = new HttpClient({ tokens, clock, allowLoopbackHttp: deps.allowLoopbackHttp });
  const doors = httpTransports({ apiUrl: api.url, apiCa: api.ca, callbackUrl, callbackCa: undefined }, clock);
  // Components in this process report to the manager, which calls them: one of the two has to be there first.
  let inProcess: ComponentClient | undefined;
  const opened = new InventoryManager({
    entries,
    runs,
    registrations,
    components: byEndpoint(
      { invoke: (...call) => inProcess?.invoke(...call) ?? Promise.reject(new Error('not open yet')) },
      http,
    ),
    tokens,
    access,
    authorization: new DryRunProof({
      entries: () => entries.list(),
      accounts: access,
      tokens,
      clientWith: deps.clientWith,
      clock,
      log,
    }),
    remote,
    client,
    journal: deps.journal,
    events,
    clock,
    random,
    log,
    metrics,
    api,
    callbackUrl,
    account: `system:serviceaccount:${homeNamespace}:${managerAccount}`,
    watchAgeMs: () => entryStore.ageMs,
  });
  manager = opened;
  inProcess = inProcessClient({
    components: referenceComponents({ management: client, connect: deps.connect, clock }),
    entry: doors.entry,
    reports: opened.reports,
    clock,
  });
  return {
    manager: opened,
    callbacks: callbackListener({
      reports: opened.reports,
      tokens: tokenReader(cluster.client),
      namespaceOf: (uid) => entries.find(uid)?.ref.namespace,
      leads: () => opened.leads,
      log,
    }),
    stores: [entryStore, runStore, registrationStore],
    close: async () => {
      http.close();
      doors.close();
      await remote.close();
    },
  };
}

/** Calls each component the way it is registered: in this process or over HTTP. */
const byEndpoint = (inProcess: ComponentClient, http: ComponentClient): ComponentClient => ({
  invoke: (registration, request, signal) =>
    (registration.endpoint.inProcess === undefined ? http : inProcess).invoke(registration, request, signal),
});

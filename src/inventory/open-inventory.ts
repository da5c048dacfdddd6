import type { RequestListener } from 'node:http';
import { clusterInventories, componentReconcilers, managerAccount, reconcileRuns } from '../api/inventory/names.ts';
import type { Journal } from '../audit/journal.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { ClusterTls, Credentials } from '../kube/credentials.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { DryRunProof } from './accounts/dry-run-proof.ts';
import { EntryAccounts } from './accounts/entry-accounts.ts';
import { RunTokens, tokenReader } from './accounts/tokens.ts';
import { callbackListener } from './http/callbacks.ts';
import { HttpComponentClient } from './http/http-component-client.ts';
import { InventoryManager } from './manager/inventory-manager.ts';
import { Registrations } from './manager/registrations.ts';
import { RemoteHub } from './remote/hub.ts';
import { entryView, KubeInventoryStore } from './stores/kube-inventory-store.ts';
import { KubeRunStore, runView } from './stores/kube-run-store.ts';
import { registrationView } from './stores/registration-view.ts';

interface InventoryDeps {
  readonly cluster: Cluster;
  /** For writes, tokens, and reads before writes; works only while this replica leads. */
  readonly client: Client;
  readonly events: EventRecorder;
  readonly journal: Journal;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly connect: (credentials: Credentials) => Cluster;
  /** A client of the management cluster with this token only. */
  readonly clientWith: (token: string) => { readonly client: Client; close(): Promise<void> };
  /** Address of the API server for components, which compare it with their configuration. */
  readonly apiUrl: string;
  /** How this process trusts the API server. Requests contain the CA, if any. */
  readonly apiTls: Omit<ClusterTls, 'cert' | 'key'>;
  /** Without a trailing slash and the path of the contract. */
  readonly callbackUrl: string;
  readonly homeNamespace: string;
  readonly allowLoopbackHttp: boolean;
}

interface OpenInventory {
  readonly manager: InventoryManager;
  readonly callbacks: RequestListener;
  /** Stores of the manager, for readiness. */
  readonly stores: readonly Store<Projected>[];
  /** Closes connections to components and clusters. Stores and controllers end separately. */
  close(): Promise<void>;
}

export function openInventory(deps: InventoryDeps): OpenInventory {
  const { cluster, client, clock, random, log, metrics, events, callbackUrl, homeNamespace } = deps;
  const { apiUrl, apiTls } = deps;
  // The stores are opened before the manager that counts their relists.
  let opened: InventoryManager | undefined;
  const relisted = (): void => opened?.relisted();
  const entryStore = cluster.watch({ resource: clusterInventories, project: entryView, onRelist: relisted }).store;
  const runStore = cluster.watch({ resource: reconcileRuns, project: runView, onRelist: relisted }).store;
  const registrationStore = cluster.watch({
    resource: componentReconcilers,
    project: registrationView,
    onRelist: relisted,
  }).store;
  const entries = new KubeInventoryStore(client, entryStore);
  const runs = new KubeRunStore(client, runStore, entries, clock);
  const registrations = new Registrations(registrationStore);
  const accounts = new EntryAccounts({ client, events, clock });
  const tokens = new RunTokens({ client, accounts, homeNamespace, clock });
  const remote = new RemoteHub({ cluster, client, connect: deps.connect, clock, random, metrics });
  const http = new HttpComponentClient({ tokens, clock, allowLoopbackHttp: deps.allowLoopbackHttp });
  const manager = new InventoryManager({
    entries,
    runs,
    registrations,
    components: http,
    tokens,
    access: accounts,
    authorization: new DryRunProof({
      entries: () => entries.list(),
      accounts,
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
    api: { url: apiUrl, ca: apiTls.ca?.toString() },
    callbackUrl,
    account: `system:serviceaccount:${homeNamespace}:${managerAccount}`,
    watchAgeMs: () => entryStore.ageMs,
  });
  opened = manager;
  return {
    manager,
    callbacks: callbackListener({
      reports: manager.reports,
      tokens: tokenReader(cluster.client),
      namespaceOf: (uid) => entries.find(uid)?.ref.namespace,
      leads: () => manager.leads,
      log,
      clock,
    }),
    stores: [entryStore, runStore, registrationStore],
    close: async () => {
      http.close();
      await remote.close();
    },
  };
}

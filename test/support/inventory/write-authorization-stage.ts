import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { chart, Helm, type Manifest } from '../../../sandbox/chart/helm.ts';
import { installInventoryKinds, removeInventoryKinds } from '../../../sandbox/inventory-kinds.ts';
import { issue } from '../../../sandbox/pki.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { clusterInventories, componentReconcilers, reconcileRuns, runName } from '../../../src/api/inventory/names.ts';
import { apiVersionOf, type KubeObject } from '../../../src/api/object.ts';
import { destinationOf } from '../../../src/audit/fd-writer.ts';
import { openJournal } from '../../../src/audit/journal.ts';
import { readConfig } from '../../../src/config.ts';
import { clock } from '../../../src/features/feature.ts';
import { openInventoryWebhooks } from '../../../src/features/inventory.ts';
import { openWebhooks } from '../../../src/features/serving.ts';
import { DryRunProof } from '../../../src/inventory/accounts/dry-run-proof.ts';
import { EntryAccounts, type Grantee } from '../../../src/inventory/accounts/entry-accounts.ts';
import { RunTokens } from '../../../src/inventory/accounts/tokens.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import type { IssuedToken } from '../../../src/inventory/ports.ts';
import { entryView } from '../../../src/inventory/stores/kube-inventory-store.ts';
import { runObject } from '../../../src/inventory/stores/run-object.ts';
import { own } from '../../../src/kit/json-value.ts';
import { readKeyPair } from '../../../src/kit/key-pair.ts';
import type { Client } from '../../../src/kube/client.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { sharedPlane, testNamespace } from '../plane.ts';
import { runRecordOf } from './run-record.ts';

const home = 'drawbridge-system';
const serverUser = `system:serviceaccount:${home}:drawbridge-inventory`;
const root = join(chart, '../..');
const webhookFolder = join(root, 'webhooks/inventory');
const { signal } = new AbortController();

/**
 * Inventory webhooks and accounts on the shared plane, with the permissions of the chart and without a manager: tests write the run
 * records. Only one stage at a time, because webhook configurations are cluster-wide: `open` in `before`, `close` in `after`.
 */
export class WriteAuthorizationStage {
  readonly plane: Plane;
  readonly namespace: string;
  /** Client with administrator permissions. */
  readonly admin: Client;
  /** Client with the permissions of the server. */
  readonly server: Client;
  readonly accounts: EntryAccounts;
  readonly tokens: RunTokens;
  readonly events: string[] = [];
  readonly #clusters: OpenCluster[];
  readonly #rights: string;
  readonly #auditFile: string;
  #port = 0;
  #webhooks: { close(): Promise<void> } | undefined;

  private constructor(plane: Plane, namespace: string, clusters: [OpenCluster, OpenCluster], rights: string) {
    this.plane = plane;
    this.namespace = namespace;
    this.#clusters = clusters;
    this.#rights = rights;
    [this.admin, this.server] = [clusters[0].client, clusters[1].client];
    this.#auditFile = join(plane.directory, `audit-${randomUUID()}.jsonl`);
    const events = { record: ({ reason }: { reason: string }) => void this.events.push(reason), close: async () => {} };
    this.accounts = new EntryAccounts({ client: this.server, events, clock });
    this.tokens = new RunTokens({ client: this.server, accounts: this.accounts, homeNamespace: home, clock });
  }

  static async open(): Promise<WriteAuthorizationStage> {
    const plane = await sharedPlane();
    await installInventoryKinds(plane);
    const namespace = await testNamespace('inventory', plane);
    const rights = await rightsOfTheChart(plane, namespace);
    await plane.kubectl(['apply', '-f', '-'], { input: rights });
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${home}`, 'system:authenticated'];
    const kubeconfigs = [plane.adminKubeconfig, await plane.kubeconfigFor(serverUser, groups)];
    const [admin, server] = await Promise.all(kubeconfigs.map((file) => fileCredentials(file)));
    assert.ok(admin && server);
    const stage = new WriteAuthorizationStage(
      plane,
      namespace,
      [openCluster(admin, { clock, log: noLog }), openCluster(server, { clock, log: noLog })],
      rights,
    );
    await stage.serve();
    return stage;
  }

  /** Serves and registers the webhooks. Resolves when the API server calls them. */
  async serve(): Promise<void> {
    const cluster = openCluster(await fileCredentials(await this.plane.kubeconfigFor(serverUser)), {
      clock,
      log: noLog,
    });
    const { certificate, key } = issue(this.plane.authority, { commonName: 'webhook', serves: ['localhost'] });
    const current = readKeyPair(Buffer.from(certificate), Buffer.from(key));
    const journal = openJournal({ destination: destinationOf(this.#auditFile), replica: 'test', clock });
    const config = readConfig([`--features=inventory`, `--port=${this.#port}`, '--bind-address=127.0.0.1'], {});
    const host = { config, cluster, metrics: createMetrics(), log: noLog };
    const serving = { certificate: () => ({ current, start() {}, close() {} }), journal };
    const { ports, close } = await openWebhooks(host, serving, [openInventoryWebhooks(host)]);
    this.#port = ports['webhooks'] ?? 0;
    this.#webhooks = {
      close: async () => {
        for (const one of Object.values(close)) await one();
        await cluster.close();
        await journal.close();
      },
    };
    await this.plane.kubectl(['apply', '-f', '-'], { input: this.#configurations() });
    // The two kinds of configurations take effect independently.
    await until('the API server to ask', () => this.#webhooksWork(), { timeoutMs: 30_000 });
  }

  /** Stops serving the webhooks; they stay registered. */
  async stopServing(): Promise<void> {
    await this.#webhooks?.close();
    this.#webhooks = undefined;
  }

  async close(): Promise<void> {
    const { plane } = this;
    await plane.kubectl(['delete', '--ignore-not-found', '-f', '-'], { input: this.#configurations() });
    await this.stopServing();
    await removeInventoryKinds(plane);
    await plane.kubectl(['delete', '--ignore-not-found', '-f', '-'], { input: this.#rights });
    for (const cluster of this.#clusters) await cluster.close();
    await plane.call('DELETE', `/api/v1/namespaces/${this.namespace}`);
  }

  /** Creates an entry as `who`; default: an administrator. */
  async entry(name: string, spec: object = {}, who: Client = this.admin): Promise<Entry> {
    const { namespace } = this;
    return viewOf(await who.create(clusterInventories, objectOf(clusterInventories, { namespace, name }, spec)));
  }

  /** Reads the latest version of an entry. */
  async read({ ref }: Entry): Promise<KubeObject> {
    return this.admin.get(clusterInventories, ref);
  }

  /** Creates a registration; no manager reads it. */
  async register(name: string, spec: object = {}): Promise<void> {
    const whole = { endpoint: { url: 'http://127.0.0.1:1' }, ...spec };
    await this.admin.create(componentReconcilers, objectOf(componentReconcilers, { name }, whole));
  }

  /** Issues a token of a component for an entry, without a run. */
  token(entry: Entry, component: Grantee): Promise<IssuedToken> {
    return this.tokens.forRun(entry, component, signal);
  }

  /** Stores a run record like the server; by default of an active run. */
  async record(
    { ref }: Entry,
    component: string,
    state: {
      readonly phase?: 'Idle' | 'Running';
      readonly credentialId?: string;
      readonly previous?: { readonly id: string; readonly expiresAtMs: number };
      readonly seq?: number;
    },
  ): Promise<void> {
    const { phase = 'Running', credentialId, previous, seq = 1 } = state;
    const fields = { component, seq, phase, credentialId, previousCredential: previous, startedAtMs: clock.now() };
    const object = runObject(runRecordOf(ref, fields));
    const name = { namespace: ref.namespace, name: runName(ref, component) };
    await this.server.delete(reconcileRuns, name);
    await this.server.create(reconcileRuns, object);
  }

  /** Result of a call with this token: 200 or the code of the rejection. */
  async verdict(token: string, call: (client: Client) => Promise<unknown>): Promise<number> {
    return this.as(token, (client) => codeOf(call(client)));
  }

  /** Message of a rejected call with this token. */
  async refusal(token: string, call: (client: Client) => Promise<unknown>): Promise<string> {
    return this.as(token, (client) =>
      call(client).then(
        () => assert.fail('it was not refused'),
        (error: Error) => error.message,
      ),
    );
  }

  async as<T>(token: string, call: (client: Client) => Promise<T>): Promise<T> {
    const { client, close } = this.clientWith(token);
    try {
      return await call(client);
    } finally {
      await close();
    }
  }

  clientWith(token: string): { client: Client; close(): Promise<void> } {
    const { server, authority } = this.plane;
    const credentials = staticCredentials({ server, token, tls: { ca: authority.certificate } });
    const cluster = openCluster(credentials, { clock, log: noLog });
    return { client: cluster.client, close: () => cluster.close() };
  }

  proof(...entries: Entry[]): DryRunProof {
    return new DryRunProof({
      entries: () => entries,
      accounts: this.accounts,
      tokens: this.tokens,
      clientWith: (token) => this.clientWith(token),
      clock,
      log: noLog,
    });
  }

  /** Lines of the audit journal so far. */
  audit(): Record<string, unknown>[] {
    return readFileSync(this.#auditFile, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }

  /**
   * Dry runs that only working webhooks answer as expected: they reject a registration that reads its own output, and overwrite
   * kubeconfigSetBy.
   */
  async #webhooksWork(): Promise<boolean> {
    const { admin, namespace } = this;
    const loop = { endpoint: { url: 'http://127.0.0.1:1' }, reads: ['/status/outputs/trial'] };
    const registration = objectOf(componentReconcilers, { name: 'trial' }, loop);
    if ((await codeOf(admin.create(componentReconcilers, registration, { dryRun: true }))) !== 422) return false;
    const forged = { mode: 'byoc', kubeconfigSecretRef: { name: 'x' }, kubeconfigSetBy: { username: 'nobody' } };
    const entry = objectOf(clusterInventories, { namespace, name: 'trial' }, forged);
    const mutated = await admin.create(clusterInventories, entry, { dryRun: true }).catch(() => undefined);
    const setter = own(own(mutated?.spec, 'kubeconfigSetBy'), 'username');
    return setter !== undefined && setter !== 'nobody';
  }

  #configurations(): string {
    const caBundle = Buffer.from(this.plane.authority.certificate).toString('base64');
    return readdirSync(webhookFolder)
      .flatMap((file) => parseAllDocuments(readFileSync(join(webhookFolder, file), 'utf8')))
      .map((document) => document.toJS() as Manifest)
      .map((configuration) => {
        for (const webhook of configuration['webhooks']) {
          webhook.clientConfig = {
            url: `https://localhost:${this.#port}${webhook.clientConfig.service.path}`,
            caBundle,
          };
        }
        return stringify(configuration);
      })
      .join('---\n');
  }
}

export const objectOf = (
  resource: typeof clusterInventories,
  metadata: KubeObject['metadata'],
  spec: object,
): KubeObject => ({ apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, spec });

export function viewOf(object: KubeObject): Entry {
  const view = entryView(object);
  assert.ok(view);
  return view;
}

export async function codeOf(call: Promise<unknown>): Promise<number> {
  try {
    await call;
    return 200;
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

async function rightsOfTheChart(plane: Plane, namespace: string): Promise<string> {
  const helm = new Helm({ program: plane.binaries.helm, home: plane.directory });
  const values = { features: { access: false, inventory: true }, inventory: { namespaces: [namespace] } };
  const shown = ['--show-only', 'templates/inventory.yaml'];
  const manifests = await helm.template(home, values, ...shown);
  const metadata = { name: home };
  await plane.kubectl(['apply', '-f', '-'], { input: stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }) });
  return manifests
    .filter(({ kind }) => kind !== 'Service')
    .map((manifest) => stringify(manifest))
    .join('---\n');
}

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments, stringify } from 'yaml';
import { Helm } from './chart/helm.ts';
import { installInventoryKinds, removeInventoryKinds } from './inventory-kinds.ts';
import { issue } from './pki.ts';
import type { PlaneClient } from './plane-client.ts';
import { freePorts } from './ports.ts';
import { until } from './wait.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const program = join(root, 'dist/drawbridge.js');
const namespace = 'drawbridge-system';
const account = 'drawbridge-inventory';
/** The Node flags of the chart's Deployment: docs/adr/0024. */
const nodeFlags = ['--heap-growing-percent=30'];

export interface InventoryServerOptions {
  /** Existing namespaces of entries; the server gets the chart's permissions for these. Default: every permission. */
  readonly namespaces?: readonly string[];
  /** Further flags; a later one overrides an earlier one. */
  readonly flags?: readonly string[];
  /** Ports in front of all replicas. Default: the ports of this server. */
  readonly front?: { readonly webhooks?: number; readonly callbacks?: number };
  /** URL of the API server for the server; pass a proxy's URL to inject faults. Components get the API server's own URL. */
  readonly apiserver?: string;
}

/** `drawbridge serve --features=inventory` on a plane, with its CRDs and webhooks. Components may use plain http on loopback addresses. */
export class InventoryServer {
  /** The namespace of the server. */
  readonly namespace = namespace;
  /** The callback URL of this process alone. */
  readonly callbackUrl: string;
  readonly ports: { readonly webhooks: number; readonly callbacks: number };
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly logFile: string;
  readonly auditFile: string;
  readonly #plane: PlaneClient;
  readonly #rights: string;
  readonly #start: () => ChildProcess;
  #child: ChildProcess | undefined;

  private constructor(
    plane: PlaneClient,
    ports: readonly number[],
    rights: string,
    start: (logFile: string) => ChildProcess,
  ) {
    const [webhooks = 0, healthPort = 0, metricsPort = 0, callbackPort = 0] = ports;
    this.#plane = plane;
    this.#rights = rights;
    this.ports = { webhooks, callbacks: callbackPort };
    this.callbackUrl = `http://127.0.0.1:${callbackPort}`;
    this.healthPort = healthPort;
    this.metricsPort = metricsPort;
    this.logFile = join(plane.directory, `inventory-${randomUUID().slice(0, 8)}.log`);
    this.auditFile = auditFileOf(plane, webhooks);
    this.#start = () => start(this.logFile);
  }

  /** Resolves once it is ready. */
  static async start(plane: PlaneClient, options: InventoryServerOptions = {}): Promise<InventoryServer> {
    const { namespaces, flags = [], apiserver = plane.server } = options;
    if (!existsSync(program)) throw new Error(`${program} is missing: run npm run build`);
    const ports = await freePorts(4);
    const [port = 0, healthPort = 0, metricsPort = 0, callbackPort = 0] = ports;
    const front = { webhooks: port, callbacks: callbackPort, ...options.front };
    await installInventory(plane, front.webhooks);
    const { certFile, keyFile } = await servingCertificate(plane, port);
    const user = `system:serviceaccount:${namespace}:${account}`;
    const rights = namespaces ? await rightsOfTheChart(plane, namespaces) : '';
    if (namespaces) await plane.kubectl(['apply', '-f', '-'], { input: rights });
    const authenticated = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    const groups = namespaces ? authenticated : [...authenticated, 'system:masters'];
    const args = [
      'serve',
      '--features=inventory',
      `--kubeconfig=${await plane.kubeconfigFor(user, groups, { server: apiserver })}`,
      `--component-api-url=${plane.server}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--cert-file=${certFile}`,
      `--key-file=${keyFile}`,
      `--health-port=${healthPort}`,
      `--metrics-port=${metricsPort}`,
      `--audit-log=${auditFileOf(plane, port)}`,
      `--lease-namespace=${namespace}`,
      '--leader-elect=false',
      '--log-format=text',
      '--allow-loopback-http=true',
      `--callback-url=http://127.0.0.1:${front.callbacks}`,
      `--callback-port=${callbackPort}`,
      ...flags,
    ];
    const server = new InventoryServer(plane, ports, rights, (logFile) =>
      spawn(process.execPath, [...nodeFlags, program, ...args], {
        stdio: ['ignore', 'inherit', openSync(logFile, 'a')],
      }),
    );
    await server.begin();
    return server;
  }

  /** Starts the process, also after a stop. */
  async begin(): Promise<void> {
    const child = this.#start();
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', () => process.off('exit', endWithThisProcess));
    this.#child = child;
    const isReady = async (): Promise<boolean> => {
      if (!this.running) throw new Error(`the server ended before it was ready:\n${await this.log()}`);
      return this.health('readyz').then(
        (answer) => answer.ok,
        () => false,
      );
    };
    try {
      await until('the server to be ready', isReady, { timeoutMs: 30_000, everyMs: 50 });
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.log()}`);
    }
  }

  get running(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  log(): Promise<string> {
    return readFile(this.logFile, 'utf8').catch(() => '');
  }

  /** The complete lines of its audit journal so far. */
  async audit(): Promise<Record<string, unknown>[]> {
    const text = await readFile(this.auditFile, 'utf8').catch(() => '');
    const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  metrics(): Promise<string> {
    return fetch(`http://127.0.0.1:${this.metricsPort}/metrics`).then((answer) => answer.text());
  }

  health(check: 'readyz' | 'livez'): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.healthPort}/${check}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Ends the process; the installation stays. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (!this.#child || !this.running) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
  }

  /** Deletes its permissions and its webhooks. Call it after `stop`. */
  async unregister(): Promise<void> {
    const webhooks = (await webhookManifests(this.#plane, 1)).map((manifest) => stringify(manifest));
    const input = [...(this.#rights ? [this.#rights] : []), ...webhooks].join('---\n');
    await this.#plane.kubectl(['delete', '--ignore-not-found', '-f', '-'], { input });
  }

  /** Deletes also the CRDs with every object. Call it after `stop`. */
  async uninstall(): Promise<void> {
    await this.unregister();
    await removeInventoryKinds(this.#plane);
  }
}

const auditFileOf = (plane: PlaneClient, port: number): string =>
  join(plane.directory, `inventory-audit-${port}.jsonl`);

async function installInventory(plane: PlaneClient, port: number): Promise<void> {
  await installInventoryKinds(plane);
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name: account } },
    ...(await webhookManifests(plane, port)),
  ];
  await plane.kubectl(['apply', '-f', '-'], { input: objects.map((object) => stringify(object)).join('---\n') });
}

async function rightsOfTheChart(plane: PlaneClient, namespaces: readonly string[]): Promise<string> {
  const helm = new Helm({ program: plane.binaries.helm, home: plane.directory });
  const values = { features: { access: false, inventory: true }, inventory: { namespaces } };
  const files = ['--show-only', 'templates/inventory.yaml'];
  const manifests = await helm.template(namespace, values, ...files);
  return manifests
    .filter(({ kind }) => kind !== 'Service' && kind !== 'ServiceAccount')
    .map((manifest) => stringify(manifest))
    .join('---\n');
}

interface WebhookConfiguration {
  readonly webhooks: { clientConfig: { caBundle?: string; url?: string; service?: { readonly path: string } } }[];
}

/** The shipped webhook configurations, changed so that the API server calls this machine. */
async function webhookManifests(plane: PlaneClient, port: number): Promise<unknown[]> {
  const folder = join(root, 'webhooks/inventory');
  const caBundle = Buffer.from(plane.authority.certificate).toString('base64');
  const manifests: unknown[] = [];
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort()) {
    for (const document of parseAllDocuments(await readFile(join(folder, file), 'utf8'))) {
      const configuration = document.toJS() as WebhookConfiguration;
      for (const webhook of configuration.webhooks) {
        const { path = '' } = webhook.clientConfig.service ?? {};
        webhook.clientConfig = { caBundle, url: `https://127.0.0.1:${port}${path}` };
      }
      manifests.push(configuration);
    }
  }
  return manifests;
}

async function servingCertificate(plane: PlaneClient, port: number): Promise<{ certFile: string; keyFile: string }> {
  const folder = join(plane.directory, `inventory-serving-${port}`);
  await mkdir(folder, { recursive: true });
  const { certificate, key } = issue(plane.authority, { commonName: 'drawbridge', serves: ['localhost', '127.0.0.1'] });
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  await writeFile(files.certFile, certificate);
  await writeFile(files.keyFile, key, { mode: 0o600 });
  return files;
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type { InventoryServer } from '../../../sandbox/inventory-server.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { whenServed } from '../../../sandbox/served.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { systemClock as clock } from '../../../src/kit/clock.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import { SimulatedCloud } from './cloud.ts';
import { cloudCrds, serviceCrds } from './cloud-kinds.ts';
import { inventoryExample, registrationsAt } from './examples.ts';
import { GardenerFront } from './gardener-front.ts';

const program = 'examples/inventory/components/main.ts';
const root = fileURLToPath(new URL('../../..', import.meta.url));
/** In examples/inventory/reference-rights.yaml. */
const account = { namespace: 'components', name: 'reference-components' };

export interface ReferenceFleetOptions {
  readonly management: Plane;
  readonly managed: Plane;
  readonly server: InventoryServer;
  /** Server URL in kubeconfigs. Default: that of the managed plane. */
  readonly managedServer?: string;
  /** Duration of each step of the cloud. Default 200 ms. */
  readonly cloudDelayMs?: number;
}

/** The reference components as programs, with a simulated cloud. A second plane is the managed cluster. */
export class ReferenceFleet {
  /** Registrations of the examples with local addresses. */
  readonly registrations: readonly KubeObject[];
  /** Settings of the programs, except COMPONENT and PORT. */
  readonly settings: Readonly<Record<string, string>>;
  /** Called for each call, with the UID of the entry. */
  onCall: (component: string, entryUid: string) => void = () => {};
  readonly #plane: Plane;
  readonly #managedPlane: Plane;
  readonly #closers: (() => unknown)[];

  private constructor(
    { management, managed }: ReferenceFleetOptions,
    settings: Readonly<Record<string, string>>,
    programs: ReadonlyMap<string, Program>,
    closers: (() => unknown)[],
  ) {
    this.#plane = management;
    this.#managedPlane = managed;
    this.settings = settings;
    this.registrations = registrationsAt((name) => programs.get(name)?.url ?? '');
    for (const [name, running] of programs) {
      running.onLine = (line) => {
        const entryUid = /^run ([^.]+)\S+: (?:reconcile|delete)$/.exec(line)?.[1];
        if (entryUid !== undefined) this.onCall(name, entryUid);
      };
    }
    this.#closers = [...[...programs.values()].map((running) => () => running.close()), ...closers];
  }

  /** Starts the components without registrations. Apply examples/inventory/reference-rights.yaml before. */
  static async start(options: ReferenceFleetOptions): Promise<ReferenceFleet> {
    const { management, managed, managedServer = managed.server, server, cloudDelayMs = 200 } = options;
    await applied(management, cloudCrds);
    await applied(managed, serviceCrds);
    const credentials = await fileCredentials(await management.kubeconfigFor('cloud', ['system:masters']));
    const cluster = openCluster(credentials, { clock });
    const cloud = new SimulatedCloud({
      cluster,
      clock,
      delayMs: cloudDelayMs,
      kubeconfig: () => adminKubeconfig(managed, 'shoot-admin', managedServer),
    });
    await cloud.start();
    const front = await GardenerFront.start(management, cloud);
    const settings = {
      KUBECONFIG: await accountKubeconfig(management, front.url),
      API_URL: management.server,
      CALLBACK_URL: server.callbackUrl,
    };
    const names = inventoryExample('components.yaml').map(({ metadata }) => metadata.name);
    const programs = await Promise.all(
      names.map(async (name) => [name, await Program.start({ ...settings, COMPONENT: name, PORT: '0' })] as const),
    );
    return new ReferenceFleet(options, settings, new Map(programs), [
      () => front.close(),
      () => cloud.stop(),
      () => cluster.close(),
    ]);
  }

  async register(changes: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {}): Promise<void> {
    const changed = this.registrations.map((object) => ({
      ...object,
      spec: { ...(object.spec as object), ...changes[object.metadata.name] },
    }));
    await this.#plane.kubectl(['apply', '-f', '-'], { input: manifests(changed) });
  }

  async unregister(): Promise<void> {
    const names = this.registrations.map(({ metadata }) => metadata.name);
    await this.#plane.kubectl(['delete', 'componentreconcilers', '--ignore-not-found', ...names]);
  }

  /** Stops the components and the cloud. The registrations stay. */
  async close(): Promise<void> {
    for (const close of this.#closers) await close();
  }

  /** Deletes the CRDs of other projects. */
  async uninstall(): Promise<void> {
    const names = (crds: readonly KubeObject[]): string[] => crds.map(({ metadata }) => metadata.name);
    await this.#plane.kubectl(['delete', 'crd', '--ignore-not-found', '--wait=false', ...names(cloudCrds)]);
    await this.#managedPlane.kubectl(['delete', 'crd', '--ignore-not-found', '--wait=false', ...names(serviceCrds)]);
  }
}

/** One process of main.ts. */
class Program {
  readonly url: string;
  onLine: (line: string) => void = () => {};
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: string) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Resolves once it listens. */
  static async start(settings: Readonly<Record<string, string>>): Promise<Program> {
    const child = spawn(process.execPath, [program], {
      cwd: root,
      env: { PATH: process.env['PATH'], ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', () => process.off('exit', endWithThisProcess));
    const lines = createInterface(child.stdout);
    const [line] = await Promise.race([
      once(lines, 'line'),
      once(child, 'exit').then(() => Promise.reject(new Error(`component ${settings['COMPONENT']} ended`))),
    ]);
    const running = new Program(child, /listens on port (\d+)$/.exec(line)?.[1] ?? '');
    lines.on('line', (next) => running.onLine(next));
    return running;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}

const manifests = (objects: readonly unknown[]): string => objects.map((object) => stringify(object)).join('---\n');

async function applied(plane: Plane, crds: readonly KubeObject[]): Promise<void> {
  await plane.kubectl(['apply', '-f', '-'], { input: manifests(crds) });
  await Promise.all(crds.map(({ metadata }) => whenServed(plane, metadata.name)));
}

/** Issues a new kubeconfig with its own certificate. */
export async function adminKubeconfig(plane: Plane, user: string, server = plane.server): Promise<string> {
  return readFile(await plane.kubeconfigFor(user, ['system:masters'], { server }), 'utf8');
}

/** Writes a kubeconfig with a token of the account of the components, and returns its path. */
async function accountKubeconfig(plane: Plane, server: string): Promise<string> {
  const path = join(plane.directory, 'kubeconfigs', 'reference-components.yaml');
  const authority = Buffer.from(plane.authority.certificate).toString('base64');
  const user = { token: await plane.serviceAccountToken(account.namespace, account.name) };
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'management', cluster: { server, 'certificate-authority-data': authority } }],
    users: [{ name: account.name, user }],
    contexts: [{ name: 'management', context: { cluster: 'management', user: account.name } }],
    'current-context': 'management',
  };
  await writeFile(path, stringify(kubeconfig), { mode: 0o600 });
  return path;
}

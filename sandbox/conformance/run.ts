import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureGoPrograms } from '../build/binaries.ts';
import { conformancePrograms } from '../build/programs.ts';
import { run } from '../build/run.ts';
import { drawbridgeImage } from '../node/images/images.ts';
import { obstacle, prepareNode, type RealNode, startNode } from '../node/node.ts';
import { kubernetesVersion } from '../versions.ts';
import { until } from '../wait.ts';
import { importSuiteImages } from './images.ts';
import { page } from './page.ts';
import { Suite } from './suite.ts';
import { conformance, streams } from './tests.ts';

/**
 * `make conformance`: Kubernetes' own end-to-end tests on a real node: conformance tests without drawbridge, with all features up, and with
 * every Deployment at 0; tests of kubectl's streams directly and through the gateway. Writes docs/reference/conformance.md. Exit code 1 if a
 * test that passes without drawbridge fails with it.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const system = 'drawbridge-system';
const say = (line: string): void => console.error(line);

async function main(): Promise<boolean> {
  const parts = await prepareNode(say);
  const programs = await ensureGoPrograms(conformancePrograms, { onProgress: say });
  await installNginx();
  const node = await startNode(parts);
  const stop = (): void => void node.stop().then(() => process.exit(1));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    await importSuiteImages(node, programs.agnhost);
    const suite = new Suite(node, programs);
    const tests = conformance.map((name) => `${name}.*\\[Conformance\\]`);
    const time = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
      const startedMs = performance.now();
      const result = await work();
      say(`${what}: ${Math.round((performance.now() - startedMs) / 1000)} s`);
      return result;
    };
    const bare = await time('conformance without drawbridge', () => suite.run('bare', tests));
    const direct = await time('streams, directly', () => suite.run('direct', streams));
    await install(node);
    const up = await time('conformance with drawbridge', () => suite.run('up', tests));
    const gateway = await time('streams, through the gateway', async () =>
      suite.run('gateway', streams, await wrapper(node)),
    );
    await node.kubectl(['scale', 'deployment', '--all', '--replicas=0', '-n', system]);
    const deletionMs = await timeOfDeletion(node);
    const down = await time('conformance with drawbridge down', () => suite.run('down', tests));
    const results = { version: kubernetesVersion, bare, up, down, direct, gateway, deletionMs };
    const { text, failures } = page(results);
    await writeFile(join(root, 'docs/reference/conformance.md'), text);
    console.log(text);
    return failures === 0;
  } finally {
    await node.stop();
  }
}

/** Installs all features, and permits templates to grant what the tests of streams use. */
async function install(node: RealNode): Promise<void> {
  await node.kubectl(['create', 'namespace', 'fleet']);
  const repository = (await drawbridgeImage()).split(':')[0];
  const values = {
    image: { repository },
    features: { access: true, gateway: true, inventory: true, binding: true },
    inventory: { namespaces: ['fleet'] },
    binding: { bindable: ['widgets.acme.example'] },
    grantable: [
      { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
      { apiGroups: [''], resources: ['pods/attach', 'pods/portforward'], verbs: ['get', 'create'] },
    ],
  };
  const file = join(node.directory, 'values.json');
  await writeFile(file, JSON.stringify(values));
  const args = ['install', 'drawbridge', 'charts/drawbridge', '-n', system, '--create-namespace', '-f', file, '--wait'];
  const env = { ...process.env, KUBECONFIG: node.adminKubeconfig };
  const { code, stderr } = await run(node.binaries.helm, args, { cwd: root, env });
  if (code !== 0) throw new Error(`helm ${args.join(' ')} ended with ${code}: ${stderr}`);
}

/** A kubectl that sends streams through the gateway. */
async function wrapper(node: RealNode): Promise<string> {
  const path = join(node.directory, 'kubectl');
  const program = fileURLToPath(new URL('kubectl.ts', import.meta.url));
  const tsx = fileURLToPath(import.meta.resolve('tsx'));
  const lines = [
    '#!/bin/sh',
    `export DRAWBRIDGE_KUBECTL='${node.binaries.kubectl}' KUBECONFIG='${node.adminKubeconfig}'`,
    `exec '${process.execPath}' --import '${tsx}' '${program}' "$@"`,
  ];
  await writeFile(path, `${lines.join('\n')}\n`);
  await chmod(path, 0o755);
  return path;
}

/** How long a namespace takes to go, ms. */
async function timeOfDeletion(node: RealNode): Promise<number> {
  await node.kubectl(['create', 'namespace', 'deleted']);
  const startedMs = performance.now();
  await node.kubectl(['delete', 'namespace', 'deleted', '--wait=false']);
  const gone = async (): Promise<boolean> => (await node.probe('/api/v1/namespaces/deleted')).status === 404;
  await until('the deletion of a namespace', gone, { timeoutMs: 600_000, everyMs: 500 });
  return performance.now() - startedMs;
}

async function installNginx(): Promise<void> {
  const script = 'command -v nginx >/dev/null || apt-get install --yes --no-install-recommends nginx-light';
  const { code, stderr } = await run('sh', ['-c', script]);
  if (code !== 0) throw new Error(`cannot install nginx, which the suite's Pods run: ${stderr}`);
}

const reason = obstacle();
if (reason !== undefined) say(reason);
process.exit(reason === undefined && (await main()) ? 0 : 1);

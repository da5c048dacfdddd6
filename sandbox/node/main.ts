import { dirname } from 'node:path';
import { kubernetesVersion } from '../versions.ts';
import { drawbridgeImage } from './images/images.ts';
import { obstacle, prepareNode, type RealNode, startNode } from './node.ts';

// `make node`: a Kubernetes node with its control plane until Ctrl-C. `make node-programs` (PREPARE=1) only builds what it needs.

/** The people of examples/ and of the documents, and their groups. */
const people = { alice: 'devs', bob: 'payments-leads', carol: 'sre' } as const;

const reason = obstacle();
if (reason !== undefined) {
  console.error(reason);
  process.exit(1);
}
const parts = await prepareNode((line) => console.error(line));
if (!process.env['PREPARE']) await run();

async function run(): Promise<void> {
  const node = await startNode(parts);
  const stop = (): void => void node.stop().then(() => process.exit(0));
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  // Keeps this process running.
  setInterval(() => undefined, 60_000);
  console.log(await howToUse(node));
}

async function howToUse(node: RealNode): Promise<string> {
  const users = Object.entries(people).map(async ([name, group]) => {
    const path = await node.kubeconfigFor(name, [group]);
    return `  # export KUBECONFIG=${path}   # ${name}, group ${group}`;
  });
  const repository = (await drawbridgeImage()).split(':')[0];
  return [
    `\nA Kubernetes ${kubernetesVersion} node is up. It has busybox:1.37 and the image of this checkout. In another terminal:\n`,
    `  cd ${process.cwd()}`,
    `  export PATH=${dirname(node.binaries.kubectl)}:$PATH`,
    `  export KUBECONFIG=${node.adminKubeconfig}   # the administrator`,
    ...(await Promise.all(users)),
    `  helm install drawbridge charts/drawbridge --namespace drawbridge-system --create-namespace \\`,
    `    --set image.repository=${repository}`,
    '\nRun end-to-end tests on it instead of on one of their own:\n',
    `  DRAWBRIDGE_NODE=${node.directory} make e2e FILE=test/e2e/install.test.ts\n`,
    `Logs are in ${node.directory}/logs. Ctrl-C ends it and removes everything.\n`,
  ].join('\n');
}

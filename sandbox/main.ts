import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { applyAccessExamples, applyTemplatesWithoutExec, commandsToTry, writeGrantable } from './access-examples.ts';
import { addressesOf, execNote } from './addresses.ts';
import { componentPrograms } from './build/programs.ts';
import { type Plane, startPlane } from './plane.ts';
import { ServerProcess } from './server-process.ts';
import { kubernetesVersion } from './versions.ts';

/** `make sandbox`: a control plane until Ctrl-C. With WITH=drawbridge, the server and the templates of examples/ are on it. */
const root = fileURLToPath(new URL('..', import.meta.url));
const checkEveryMs = 2000;

const wanted = process.env['WITH'] ?? '';
if (wanted !== '' && wanted !== 'drawbridge') {
  console.error(`WITH is ${JSON.stringify(wanted)}; allowed: drawbridge, or nothing for the control plane alone`);
  process.exit(2);
}

// Without the server, tests that run here install their own CRDs.
const crds = wanted ? [`${root}charts/drawbridge/files/crds`] : [];
const plane = await startPlane({ crds, onProgress: (line) => console.error(line) });
const server = wanted
  ? await ServerProcess.start(plane, { flags: ['--leader-elect=true', `--grantable=${await writeGrantable(plane)}`] })
  : undefined;
console.log(
  [
    `\nA Kubernetes ${kubernetesVersion} control plane is up. In another terminal:\n`,
    ...(server ? await howToAskForAccess(plane, server) : howToUse(plane)),
    `${execNote(plane)}\nLogs are in ${plane.directory}/logs. Ctrl-C ends it and removes everything.\n`,
  ].join('\n'),
);

const reported = new Set<string>();
// Also keeps this process running.
const check = setInterval(() => {
  for (const component of componentPrograms.map((name) => plane.component(name))) {
    if (component.running || reported.has(component.name)) continue;
    reported.add(component.name);
    console.error(`${component.name} has ended:\n${component.logTail()}`);
  }
  if (!server || server.running || reported.has('drawbridge')) return;
  reported.add('drawbridge');
  console.error(`drawbridge has ended; its log is ${server.logFile}`);
}, checkEveryMs);

const stop = (): void => {
  clearInterval(check);
  void Promise.resolve(server?.stop())
    .then(() => plane.stop())
    .then(() => process.exit(0));
};
process.on('SIGINT', stop);
process.on('SIGTERM', stop);

function howToUse({ directory, adminKubeconfig, binaries }: Plane): string[] {
  return [
    `  cd ${process.cwd()}`,
    `  export KUBECONFIG=${adminKubeconfig}`,
    `  export PATH=${dirname(binaries.kubectl)}:$PATH`,
    '  kubectl get nodes',
    '  kubectl create deployment web --image=nginx --replicas=3 && kubectl rollout status deployment/web',
    '\nRun integration tests on it instead of on one of their own:\n',
    `  DRAWBRIDGE_SANDBOX=${directory} make integration FILE=test/integration/access/pod.test.ts\n`,
  ];
}

async function howToAskForAccess(client: Plane, running: ServerProcess): Promise<string[]> {
  const people = await applyAccessExamples(client);
  await applyTemplatesWithoutExec(client, running.installation.serverUser);
  const hint =
    'In templates of your own, rules for pods/log and pods/portforward work only in namespace payments: elsewhere the server does not hold these permissions.';
  const lines = [...commandsToTry(client, people), '', hint, '', ...addressesOf(client, running).split('\n'), ''];
  return lines.map((line) => (line === '' ? line : `  ${line}`));
}

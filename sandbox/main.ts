import { dirname } from 'node:path';
import { goPrograms } from './build/programs.ts';
import { type Plane, startPlane } from './plane.ts';
import { kubernetesVersion } from './versions.ts';

const checkEveryMs = 2000;

const plane = await startPlane({ onProgress: (line) => console.error(line) });
console.log(howToUse(plane));

const reported = new Set<string>();
// Also keeps this process running.
const check = setInterval(() => {
  for (const component of goPrograms.map((name) => plane.component(name))) {
    if (component.running || reported.has(component.name)) continue;
    reported.add(component.name);
    console.error(`${component.name} has ended:\n${component.logTail()}`);
  }
}, checkEveryMs);

const stop = (): void => {
  clearInterval(check);
  void plane.stop().then(() => process.exit(0));
};
process.on('SIGINT', stop);
process.on('SIGTERM', stop);

function howToUse({ directory, adminKubeconfig, binaries, execUser }: Plane): string {
  return `
A Kubernetes ${kubernetesVersion} control plane is up. In another terminal:

  cd ${process.cwd()}
  export KUBECONFIG=${adminKubeconfig}
  export PATH=${dirname(binaries.kubectl)}:$PATH
  kubectl get nodes
  kubectl create deployment web --image=nginx --replicas=3 && kubectl rollout status deployment/web

Run integration tests on it instead of on one of their own:

  DRAWBRIDGE_SANDBOX=${directory} make integration FILE=test/integration/access/pod.test.ts

No container runs: Pods only report that they run. \`kubectl exec\` runs its command on this machine, as ${execUser}.
Logs are in ${directory}/logs. Ctrl-C ends it and removes everything.
`;
}

import type { PlaneClient } from './plane-client.ts';

/** A running server of the sandbox. */
interface Server {
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly logFile: string;
  readonly auditFile?: string;
  /** Where component reconcilers read and write, if the server runs the inventory. */
  readonly callbackUrl?: string;
}

/** Where to reach a plane and the server on it, in lines for people. */
export function addressesOf(plane: PlaneClient, server: Server): string {
  const rows: [string, string | undefined][] = [
    ['kubeconfig of the administrator', plane.adminKubeconfig],
    ['health', `http://127.0.0.1:${server.healthPort}/readyz`],
    ['metrics', `http://127.0.0.1:${server.metricsPort}/metrics`],
    ['callbacks of components', server.callbackUrl],
    ['audit journal', server.auditFile],
    ['log', server.logFile],
  ];
  const lines = rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(33)}${value}`]));
  return lines.join('\n');
}

/** What `kubectl exec` does on a plane. */
export const execNote = ({ execUser }: Pick<PlaneClient, 'execUser'>): string =>
  [
    `No container runs: Pods only report that they run. \`kubectl exec\` runs its command on this machine, as ${execUser}.`,
    'So a session in the Pod of a PodAccessRequest goes on when its access ends, unless it goes through the gateway, as in',
    '`make run DEMO=session`. In a real cluster it ends with its Pod.',
  ].join('\n');

import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { chartManifests } from './installation.ts';
import type { PlaneClient } from './plane-client.ts';
import { freePorts } from './ports.ts';
import { type Launch, ProgramProcess } from './program-process.ts';

const crds = fileURLToPath(new URL('../charts/drawbridge/files/notify-crds', import.meta.url));

export interface NotifyOptions {
  /** Of the release. */
  readonly namespace: string;
  /** Whose Secrets it may read. */
  readonly secretNamespaces: readonly string[];
  /** Further flags; they override the default flags. */
  readonly flags?: readonly string[];
  /** URL of the API server; pass a proxy's URL to inject faults. */
  readonly apiserver?: string;
}

/** The feature notify as a process of the built program, with the permissions of the chart. */
export class NotifyProcess extends ProgramProcess {
  /** The user of its calls, as in the audit log. */
  readonly user: string;

  private constructor(launch: Launch, user: string) {
    super(launch);
    this.user = user;
  }

  /** Resolves once it is ready. */
  static async start(plane: PlaneClient, options: NotifyOptions): Promise<NotifyProcess> {
    const { namespace, secretNamespaces, flags = [], apiserver } = options;
    const manifests = await chartManifests(
      plane,
      { features: { notify: true }, notify: { secretNamespaces } },
      'notify.yaml',
    );
    await plane.kubectl(['apply', '-f', crds, '-f', '-'], {
      input: manifests.map((manifest) => stringify(manifest)).join('---\n'),
    });
    const user = `system:serviceaccount:${namespace}:drawbridge-notify`;
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    const kubeconfig = await plane.kubeconfigFor(user, groups, apiserver ? { server: apiserver } : {});
    const [healthPort = 0, metricsPort = 0] = await freePorts(2);
    const launch = {
      name: 'notify',
      directory: plane.directory,
      flags: [
        '--features=notify',
        `--kubeconfig=${kubeconfig}`,
        `--lease-namespace=${namespace}`,
        '--bind-address=127.0.0.1',
        // The sinks of tests and demos are on this machine.
        '--notify-allow-cidrs=127.0.0.0/8,::1/128',
        `--health-port=${healthPort}`,
        `--metrics-port=${metricsPort}`,
        '--log-format=text',
        ...flags,
      ],
      healthPort,
      metricsPort,
    };
    const process = new NotifyProcess(launch, user);
    await process.whenReady();
    return process;
  }
}

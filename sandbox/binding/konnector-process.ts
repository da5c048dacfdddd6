import { kubeconfigNamespace } from '../../src/api/binding/names.ts';
import type { PlaneClient } from '../plane-client.ts';
import { freePorts } from '../ports.ts';
import { ProgramProcess } from '../program-process.ts';

export interface KonnectorOptions {
  /** Path of the kubeconfig of the consumer. */
  readonly kubeconfig: string;
  /** Further flags; they override the default flags. */
  readonly flags?: readonly string[];
}

/** The built program as a konnector. */
export class KonnectorProcess extends ProgramProcess {
  /** Resolves once it is ready. */
  static async start(plane: PlaneClient, options: KonnectorOptions): Promise<KonnectorProcess> {
    const konnector = await KonnectorProcess.spawn(plane, options);
    await konnector.whenReady();
    return konnector;
  }

  /** Starts the process without waiting for it. */
  static async spawn({ directory }: PlaneClient, options: KonnectorOptions): Promise<KonnectorProcess> {
    const [healthPort = 0, metricsPort = 0] = await freePorts(2);
    const flags = [
      '--features=binding',
      `--kubeconfig=${options.kubeconfig}`,
      `--server-address=127.0.0.1:${healthPort}`,
      '--bind-address=127.0.0.1',
      `--metrics-port=${metricsPort}`,
      `--lease-namespace=${kubeconfigNamespace}`,
      '--leader-elect=false',
      '--log-format=text',
      ...(options.flags ?? []),
    ];
    return new KonnectorProcess({ name: 'konnector', directory, flags, healthPort, metricsPort });
  }
}

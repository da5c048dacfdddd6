import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Installation, install } from './installation.ts';
import type { PlaneClient } from './plane-client.ts';
import { freePorts } from './ports.ts';
import { type Launch, ProgramProcess } from './program-process.ts';

export interface ServerOptions {
  /** Further flags; they override the default flags. */
  readonly flags?: readonly string[];
  /** Node to run. Default: the one that runs this process. */
  readonly node?: string;
  /** Further variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** URL of the API server; pass a proxy's URL to inject faults. */
  readonly apiserver?: string;
  /** Default: a new one on free ports. */
  readonly installation?: Installation;
}

/** One line of the server's audit trail. */
export interface AuditLine {
  readonly event: string;
  readonly verdict: string;
  readonly who: { readonly user: string; readonly groups?: readonly string[] };
  readonly what: {
    readonly operation: string;
    readonly kind: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly [field: string]: unknown;
}

/** The built server as a process, installed on a plane. */
export class ServerProcess extends ProgramProcess {
  readonly installation: Installation;
  readonly auditFile: string;

  private constructor(launch: Launch, installation: Installation, auditFile: string) {
    super(launch);
    this.installation = installation;
    this.auditFile = auditFile;
  }

  /** Resolves once it is ready. */
  static async start(plane: PlaneClient, options: ServerOptions = {}): Promise<ServerProcess> {
    const server = await ServerProcess.spawn(plane, options);
    await server.whenReady();
    return server;
  }

  /** Starts the process without waiting for it. */
  static async spawn(plane: PlaneClient, options: ServerOptions = {}): Promise<ServerProcess> {
    const { directory } = plane;
    const [port = 0, healthPort = 0, metricsPort = 0] = await freePorts(3);
    const ownCertificate = options.flags?.includes('--certificates=own') ?? false;
    const installation = options.installation ?? (await install(plane, port, { ownCertificate }));
    const kubeconfig = options.apiserver
      ? await plane.kubeconfigFor(installation.serverUser, ['system:serviceaccounts', 'system:authenticated'], {
          server: options.apiserver,
        })
      : installation.kubeconfig;
    const auditFile = join(directory, `audit-${randomUUID().slice(0, 8)}.jsonl`);
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      `--port=${installation.port}`,
      '--bind-address=127.0.0.1',
      `--cert-file=${installation.certFile}`,
      `--key-file=${installation.keyFile}`,
      `--health-port=${healthPort}`,
      `--metrics-port=${metricsPort}`,
      `--audit-log=${auditFile}`,
      '--leader-elect=false',
      '--log-format=text',
      ...(options.flags ?? []),
    ];
    const launch = { name: 'server', directory, flags, healthPort, metricsPort, node: options.node, env: options.env };
    return new ServerProcess(launch, installation, auditFile);
  }

  /** The complete audit lines so far that match the filter. */
  async audit(matches: (line: AuditLine) => boolean = () => true): Promise<AuditLine[]> {
    const text = await readFile(this.auditFile, 'utf8').catch(() => '');
    return text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as AuditLine)
      .filter(matches);
  }
}

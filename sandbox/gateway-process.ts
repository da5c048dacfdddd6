import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { gatewayApiService, gatewayGroup, gatewayUserOf, gatewayVersion } from '../src/api/gateway/names.ts';
import { chartManifests } from './installation.ts';
import { issue } from './pki.ts';
import type { PlaneClient } from './plane-client.ts';
import { freePorts } from './ports.ts';
import { type Launch, ProgramProcess } from './program-process.ts';
import type { AuditLine } from './server-process.ts';

const service = 'drawbridge-gateway';

export interface GatewayOptions {
  /** Namespace of the server, with the ConfigMap of the public keys. */
  readonly namespace: string;
  /** Further flags; they override the default flags. */
  readonly flags?: readonly string[];
  /** URL of the API server; pass a proxy's URL to inject faults. */
  readonly apiserver?: string;
  /** Further variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The gateway as a process of the built program, registered as the aggregated API of a plane. */
export class GatewayProcess extends ProgramProcess {
  readonly port: number;
  readonly auditFile: string;

  private constructor(launch: Launch, port: number, auditFile: string) {
    super(launch);
    this.port = port;
    this.auditFile = auditFile;
  }

  /** Resolves once it is ready and the API server calls it. */
  static async start(
    plane: PlaneClient,
    { namespace, flags = [], apiserver, env }: GatewayOptions,
  ): Promise<GatewayProcess> {
    const [port = 0, healthPort = 0, metricsPort = 0] = await freePorts(3);
    await plane.kubectl(['apply', '-f', '-'], { input: manifests(plane, namespace, port) });
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    const kubeconfig = await plane.kubeconfigFor(
      gatewayUserOf(namespace),
      groups,
      apiserver ? { server: apiserver } : {},
    );
    const { certFile, keyFile } = await servingCertificate(plane, namespace);
    const auditFile = join(plane.directory, `gateway-audit-${randomUUID().slice(0, 8)}.jsonl`);
    const process = new GatewayProcess(
      {
        name: 'gateway',
        directory: plane.directory,
        flags: [
          '--features=gateway',
          `--kubeconfig=${kubeconfig}`,
          `--lease-namespace=${namespace}`,
          `--gateway-port=${port}`,
          '--bind-address=127.0.0.1',
          `--cert-file=${certFile}`,
          `--key-file=${keyFile}`,
          `--health-port=${healthPort}`,
          `--metrics-port=${metricsPort}`,
          `--audit-log=${auditFile}`,
          '--log-format=text',
          ...flags,
        ],
        healthPort,
        metricsPort,
        env,
      },
      port,
      auditFile,
    );
    await process.whenReady();
    await plane.kubectl(['wait', '--for=condition=Available', `apiservice/${gatewayApiService}`, '--timeout=30s']);
    return process;
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

/** Starts the gateway with exactly the permissions and under the policies of the chart. `recordings`: a folder, which it creates. */
export async function startRecordingGateway(
  plane: PlaneClient,
  namespace: string,
  recordings: string,
): Promise<GatewayProcess> {
  const files = ['gateway', 'gateway-policies', 'aggregated-roles'].map((file) => `${file}.yaml`);
  const manifests = await chartManifests(plane, { features: { gateway: true } }, ...files);
  const isRight = ({ kind }: { kind: string }): boolean => /^(Cluster)?Role(Binding)?$|^ValidatingAdmission/.test(kind);
  const input = manifests.filter(isRight).map((manifest) => stringify(manifest));
  await plane.kubectl(['apply', '-f', '-'], { input: input.join('---\n') });
  await mkdir(recordings, { mode: 0o700 });
  return GatewayProcess.start(plane, { namespace, flags: [`--recordings=${recordings}`] });
}

/** What registers the gateway: its Service, which points to this machine, and the APIService. */
function manifests(plane: PlaneClient, namespace: string, port: number): string {
  const caBundle = Buffer.from(plane.authority.certificate).toString('base64');
  const documents = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: service, namespace },
      spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ name: 'gateway', port }] },
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: gatewayApiService },
      spec: {
        group: gatewayGroup,
        version: gatewayVersion,
        groupPriorityMinimum: 100,
        versionPriority: 10,
        caBundle,
        service: { namespace, name: service, port },
      },
    },
  ];
  return documents.map((document) => stringify(document)).join('---\n');
}

async function servingCertificate(plane: PlaneClient, namespace: string) {
  const folder = join(plane.directory, `serving-${namespace}`);
  await mkdir(folder, { recursive: true });
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  // The replicas of one gateway share a pair.
  if (existsSync(files.keyFile)) return files;
  const { certificate, key } = issue(plane.authority, { commonName: service, serves: [`${service}.${namespace}.svc`] });
  await writeFile(files.certFile, certificate);
  await writeFile(files.keyFile, key, { mode: 0o600 });
  return files;
}

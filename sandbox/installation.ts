import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments, stringify } from 'yaml';
import { Helm, type Manifest } from './chart/helm.ts';
import { issue } from './pki.ts';
import type { PlaneClient } from './plane-client.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const namespace = 'drawbridge-system';
const service = 'drawbridge-webhook';
const serverUser = `system:serviceaccount:${namespace}:drawbridge`;

/** drawbridge as installed on a plane: its permissions, its webhooks, and the files that the server starts with. */
export interface Installation {
  readonly namespace: string;
  /** The user of the server's calls, as in the audit log. */
  readonly serverUser: string;
  readonly kubeconfig: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** The port on which the API server calls the webhooks. */
  readonly port: number;
}

/**
 * Applies the shipped manifests and sets two fields of the webhooks: `caBundle`, and `port`, because the Service points to this machine
 * (ExternalName), where only root may listen on 443. Call it again to set another port. `ownCertificate`: leaves `caBundle` to the server.
 */
export async function install(
  plane: PlaneClient,
  port: number,
  { ownCertificate = false } = {},
): Promise<Installation> {
  rights ??= rightsOfTheChart(plane);
  const webhooks = await webhookManifests(plane, port, ownCertificate);
  const manifests = [systemNamespace, ...(await rights), serviceTo(port), ...webhooks];
  await plane.kubectl(['apply', '-f', join(root, 'charts/drawbridge/files/crds'), '-f', '-'], {
    input: manifests.map((manifest) => stringify(manifest)).join('---\n'),
  });
  return {
    namespace,
    serverUser,
    port,
    kubeconfig: await plane.kubeconfigFor(serverUser, [
      'system:serviceaccounts',
      `system:serviceaccounts:${namespace}`,
      'system:authenticated',
    ]),
    ...(await servingCertificate(plane)),
  };
}

/** Rendered once, because every start of a server in a test installs it. */
let rights: Promise<Manifest[]> | undefined;

/** The chart's manifests, so that every test runs with the permissions and policies that users get. */
const rightsOfTheChart = (plane: PlaneClient): Promise<Manifest[]> =>
  chartManifests(plane, {}, 'rbac.yaml', 'policies.yaml');

/**
 * The chart's ClusterRoles for people, as users get them with all features, so that the ones that messages name exist. `install` does not
 * apply them.
 */
export async function userRoles(plane: Pick<PlaneClient, 'binaries' | 'directory'>): Promise<Manifest[]> {
  const values = { features: { inventory: true, gateway: true, notify: true }, inventory: { namespaces: ['fleet'] } };
  const manifests = await chartManifests(plane, values, 'aggregated-roles.yaml', 'inventory.yaml');
  return manifests.filter(({ kind, metadata }) => kind === 'ClusterRole' && forPeople.test(metadata.name));
}

const forPeople = /^drawbridge-(requester|viewer|approver|session-auditor|notification-admin|inventory-viewer)$/;

/** Of templates of the chart, by name. `values`: as in values.yaml. */
export function chartManifests(
  plane: Pick<PlaneClient, 'binaries' | 'directory'>,
  values: object,
  ...files: readonly string[]
): Promise<Manifest[]> {
  const helm = new Helm({ program: plane.binaries.helm, home: plane.directory });
  return helm.template(namespace, values, ...files.flatMap((file) => ['--show-only', `templates/${file}`]));
}

const systemNamespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };

const serviceTo = (port: number): unknown => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: service, namespace },
  spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ name: 'webhook', port }] },
});

async function webhookManifests(plane: PlaneClient, port: number, ownCertificate: boolean): Promise<unknown[]> {
  const caBundle = Buffer.from(plane.authority.certificate).toString('base64');
  const folder = join(root, 'webhooks');
  const documents: unknown[] = [];
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort()) {
    for (const document of parseAllDocuments(await readFile(join(folder, file), 'utf8'))) {
      const configuration = document.toJS() as {
        webhooks: { clientConfig: { caBundle?: string; service: { port?: number } } }[];
      };
      for (const { clientConfig } of configuration.webhooks) {
        if (!ownCertificate) clientConfig.caBundle = caBundle;
        clientConfig.service.port = port;
      }
      documents.push(configuration);
    }
  }
  return documents;
}

async function servingCertificate(plane: PlaneClient): Promise<{ certFile: string; keyFile: string }> {
  const folder = join(plane.directory, 'serving');
  await mkdir(folder, { recursive: true });
  const { certificate, key } = issue(plane.authority, {
    commonName: service,
    serves: [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`, 'localhost', '127.0.0.1'],
  });
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  await writeFile(files.certFile, certificate);
  await writeFile(files.keyFile, key, { mode: 0o600 });
  return files;
}

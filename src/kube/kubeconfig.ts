import { access, readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { CodedError, describe, quote } from '../kit/errors.ts';
import type { ClusterTls, ConnectionAuth, Credentials } from './credentials.ts';

export interface AmbientOptions {
  /** `--kubeconfig`: the only kubeconfig that is read. */
  readonly file?: string;
  /** The value of $KUBECONFIG: several files; the first file that defines a name counts. */
  readonly paths?: string;
  /** Default: the current context. Ignored with the Pod's ServiceAccount. */
  readonly context?: string;
}

const inClusterToken = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/**
 * The credentials of this process: from `file`, else `paths`, else the Pod's ServiceAccount, else `~/.kube/config`. Skips missing files
 * of `paths`. Rejects with CodedError `KubeconfigMissing` if no file of `paths` exists, or `~/.kube/config` does not. Rejects with
 * `KubeconfigInvalid`, also if `file` does not exist or the context's cluster has a proxy-url, or with `KubeconfigContextNotFound`.
 */
export async function ambientCredentials({ file, paths, context }: AmbientOptions = {}): Promise<Credentials> {
  if (file) return credentialsOf(await loadFiles([file]), context);
  const listed = (paths ?? '').split(delimiter).filter((path) => path !== '');
  if (listed.length > 0) return credentialsOf(await loadFiles(await existing(listed)), context);
  if (await exists(inClusterToken)) return credentialsOf(await loadInCluster(), undefined);
  return credentialsOf(await loadFiles(await existing([join(homedir(), '.kube', 'config')])), context);
}

/** The credentials in one kubeconfig file of an administrator. Runs exec plugins. Rejects like `ambientCredentials`. @testing */
export function fileCredentials(path: string, context?: string): Promise<Credentials> {
  return ambientCredentials({ file: path, ...(context === undefined ? {} : { context }) });
}

// Imported on demand: it takes half a second, and most importers of this file never load a kubeconfig.
const clientNode = () => import('@kubernetes/client-node');

async function loadInCluster(): Promise<KubeConfig> {
  const config = new (await clientNode()).KubeConfig();
  config.loadFromCluster();
  if (!URL.canParse(config.getCurrentCluster()?.server ?? '')) {
    throw new CodedError(
      'KubeconfigInvalid',
      'the Pod has a ServiceAccount token, but KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; set them or --kubeconfig',
    );
  }
  return config;
}

async function loadFiles(paths: readonly string[]): Promise<KubeConfig> {
  const { KubeConfig } = await clientNode();
  const merged = new KubeConfig();
  for (const path of paths) {
    const loaded = await loadFile(path);
    merged.currentContext ||= loaded.currentContext;
    for (const cluster of loaded.clusters) if (!merged.getCluster(cluster.name)) merged.addCluster(cluster);
    for (const user of loaded.users) if (!merged.getUser(user.name)) merged.addUser(user);
    for (const entry of loaded.contexts) if (!merged.getContextObject(entry.name)) merged.addContext(entry);
  }
  return merged;
}

async function loadFile(path: string): Promise<KubeConfig> {
  const { KubeConfig, loadYaml } = await clientNode();
  const config = new KubeConfig();
  try {
    const text = await readFile(path, 'utf8');
    config.loadFromString(text);
    config.makePathsAbsolute(dirname(resolve(path)));
    addTokenFiles(config, loadYaml(text), dirname(resolve(path)));
  } catch (cause) {
    // Keeps the first line only: further lines, also of the cause, show the text around the fault, which may be a token.
    const [why] = describe(cause).split('\n');
    throw new CodedError('KubeconfigInvalid', `kubeconfig ${quote(path, 256)} cannot be used: ${why}`);
  }
  return config;
}

/** The library ignores `tokenFile`. Its provider for files, which reads them again every minute, implements it. */
function addTokenFiles(config: KubeConfig, parsed: unknown, directory: string): void {
  const users = (parsed as { users?: { name?: unknown; user?: { tokenFile?: unknown } }[] } | undefined)?.users ?? [];
  for (const [i, user] of config.users.entries()) {
    const tokenFile = users.find(({ name }) => name === user.name)?.user?.tokenFile;
    if (typeof tokenFile !== 'string' || tokenFile === '') continue;
    const { token: _, ...rest } = user;
    config.users[i] = {
      ...rest,
      authProvider: { name: 'tokenFile', config: { tokenFile: resolve(directory, tokenFile) } },
    };
  }
}

function credentialsOf(config: KubeConfig, context: string | undefined): Credentials {
  const contextName = context ?? config.currentContext;
  const entry = config.getContextObject(contextName ?? '');
  const cluster = entry && config.getCluster(entry.cluster);
  if (!entry || !cluster) {
    const available = config.contexts.map(({ name }) => quote(name)).join(', ') || 'none';
    throw new CodedError(
      'KubeconfigContextNotFound',
      `kubeconfig: context ${quote(contextName ?? '')} does not exist or has no cluster; available contexts: ${available}`,
    );
  }
  if (cluster.proxyUrl) {
    throw new CodedError(
      'KubeconfigInvalid',
      `kubeconfig: cluster ${quote(cluster.name)} has a proxy-url, which is not supported; remove it`,
    );
  }
  config.setCurrentContext(contextName);
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...(entry.namespace ? { namespace: entry.namespace } : {}),
    connectionAuth: () => connectionAuthOf(config),
  };
}

async function connectionAuthOf(config: KubeConfig): Promise<ConnectionAuth> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  // A token file may end with a newline, which an HTTP header may not have.
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value).trim();
  if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return { tls: tlsOf(options), headers };
}

function tlsOf({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions): ClusterTls {
  return {
    ...(isText(ca) ? { ca } : {}),
    ...(isText(cert) ? { cert } : {}),
    ...(isText(key) ? { key } : {}),
    ...(servername ? { servername } : {}),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  };
}

const isText = (value: unknown): value is string | Buffer => typeof value === 'string' || Buffer.isBuffer(value);

async function existing(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) if (await exists(path)) found.push(path);
  if (found.length > 0) return found;
  throw new CodedError(
    'KubeconfigMissing',
    `no cluster to connect to: ${paths.map((path) => quote(path, 256)).join(', ')} does not exist; ` +
      'set --kubeconfig or KUBECONFIG, or run inside a cluster',
  );
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

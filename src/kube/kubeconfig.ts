import { access, readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { CodedError, describe, quote } from '../kit/errors.ts';
import { listIn, own, strings } from '../kit/json-value.ts';
import type { ClusterTls, ConnectionAuth, Credentials } from './credentials.ts';
import { loadYaml } from './yaml.ts';

export interface AmbientOptions {
  /** `--kubeconfig`: the only kubeconfig that is read. */
  readonly file?: string;
  /** $KUBECONFIG: files separated as in $PATH. If several define a name, the first counts. */
  readonly paths?: string;
  /** Default: the current context. Ignored with the Pod's ServiceAccount. */
  readonly context?: string;
}

const inClusterToken = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/**
 * The credentials of this process: `file`, else the files of `paths` that exist, else the Pod's
 * ServiceAccount, else `~/.kube/config`. Rejects with CodedError:
 * - `KubeconfigMissing`: no file of `paths` exists, or no `~/.kube/config`.
 * - `KubeconfigInvalid`: a file cannot be used, a user or proxy-url in it is not valid, or the Pod
 *   has a ServiceAccount token, but not the address of its API server.
 * - `KubeconfigContextNotFound`: no context is chosen, or it or its cluster does not exist.
 */
export async function ambientCredentials(options: AmbientOptions = {}): Promise<Credentials> {
  const files = await findFiles(options);
  return files ? credentialsOf(await loadFiles(files), options.context) : credentialsOf(loadInCluster(), undefined);
}

/** Runs exec plugins. Rejects like `ambientCredentials`. @testing */
export function fileCredentials(path: string, context?: string): Promise<Credentials> {
  return ambientCredentials({ file: path, ...(context === undefined ? {} : { context }) });
}

/** Empty with the Pod's ServiceAccount. Rejects with `KubeconfigMissing` or `KubeconfigInvalid`. */
export async function contextNames(options: AmbientOptions): Promise<string[]> {
  const files = await findFiles(options);
  return files ? (await loadFiles(files)).contexts.map(({ name }) => name) : [];
}

interface DerivedContext {
  /** Also of its cluster. */
  readonly name: string;
  /** URL of the same API server, such as a path below it. */
  readonly server: string;
  readonly namespace: string;
}

/**
 * A kubeconfig for the selected user at another URL of the same API server. It lacks the user, so
 * use it with `files`, absolute paths. Nothing with the Pod's ServiceAccount. Rejects like
 * `ambientCredentials`.
 */
export async function derivedContext(
  options: AmbientOptions,
  { name, server, namespace }: DerivedContext,
): Promise<{ readonly text: string; readonly files: readonly string[] } | undefined> {
  const files = await findFiles(options);
  if (!files) return undefined;
  const config = await loadFiles(files);
  const { context, cluster } = selectedContext(config, options.context);
  const derived = new KubeConfig();
  derived.addCluster({ ...cluster, name, server });
  derived.addContext({ name, cluster: name, user: context.user, namespace });
  derived.setCurrentContext(name);
  return { text: derived.exportConfig(), files: files.map((file) => resolve(file)) };
}

/** Nothing with the Pod's ServiceAccount. Rejects with CodedError `KubeconfigMissing`. */
async function findFiles({ file, paths = '' }: AmbientOptions): Promise<readonly string[] | undefined> {
  if (file) return [file];
  const listed = paths.split(delimiter).filter((path) => path !== '');
  if (listed.length > 0) return existingPaths(listed);
  if (await exists(inClusterToken)) return undefined;
  return existingPaths([join(homedir(), '.kube', 'config')]);
}

function loadInCluster(): KubeConfig {
  const config = new KubeConfig();
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
  const config = new KubeConfig();
  try {
    const text = await readFile(path, 'utf8');
    config.loadFromString(text);
    config.makePathsAbsolute(dirname(resolve(path)));
    const parsed: unknown = loadYaml(text);
    addTokenFiles(config, parsed, dirname(resolve(path)));
    for (const user of config.users) impersonations.set(user, impersonationIn(parsed, user.name));
  } catch (cause) {
    // Further lines, also of the cause, quote the text around the fault, which may be a token.
    const [why] = describe(cause).split('\n');
    throw new CodedError('KubeconfigInvalid', `kubeconfig ${quote(path, 256)} cannot be used: ${why}`);
  }
  return config;
}

/** By user of a kubeconfig file: what the library does not set. */
const impersonations = new WeakMap<object, ConnectionAuth['headers']>();

/** The library sends only `as`. Throws an Error for groups, a uid, or extras without `as`. */
function impersonationIn(parsed: unknown, name: string): ConnectionAuth['headers'] {
  const user = own(
    listIn(parsed, 'users').find((one) => own(one, 'name') === name),
    'user',
  );
  const groups = strings(own(user, 'as-groups'));
  const uid = own(user, 'as-uid');
  const headers: Record<string, string | string[]> = {
    ...(groups.length === 0 ? {} : { 'impersonate-group': groups }),
    ...(typeof uid === 'string' && uid !== '' ? { 'impersonate-uid': uid } : {}),
  };
  for (const [key, values] of Object.entries(own(user, 'as-user-extra') ?? {}))
    headers[`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`] = strings(values);
  const as = own(user, 'as');
  if (Object.keys(headers).length > 0 && (typeof as !== 'string' || as === ''))
    throw new Error(
      `user ${quote(name)} has as-groups, as-uid, or as-user-extra, but no as (the user to impersonate); set as`,
    );
  return headers;
}

/** The library ignores `tokenFile`. Its auth provider for token files reads a file every minute. */
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

/** @throws CodedError `KubeconfigContextNotFound` */
function selectedContext(config: KubeConfig, context: string | undefined) {
  const contextName = context ?? config.currentContext ?? '';
  const entry = config.getContextObject(contextName);
  if (!entry) {
    const available = config.contexts.map(({ name }) => quote(name)).join(', ') || 'none';
    const found = contextName === '' ? 'no current-context is set' : `context ${quote(contextName)} does not exist`;
    throw new CodedError(
      'KubeconfigContextNotFound',
      `kubeconfig: ${found}; available contexts: ${available}; ` +
        'set --context to one of them, or run kubectl config use-context NAME',
    );
  }
  const cluster = config.getCluster(entry.cluster);
  if (cluster) return { context: entry, cluster };
  throw new CodedError(
    'KubeconfigContextNotFound',
    `kubeconfig: context ${quote(contextName)} names cluster ${quote(entry.cluster)}, which does not exist; ` +
      'add the cluster, or use another context',
  );
}

function credentialsOf(config: KubeConfig, contextName: string | undefined): Credentials {
  const { context: entry, cluster } = selectedContext(config, contextName);
  const proxy = cluster.proxyUrl || undefined;
  if (proxy !== undefined) checkProxy(proxy, cluster.name);
  config.setCurrentContext(entry.name);
  const user = config.getUser(entry.user);
  const impersonation = (user && impersonations.get(user)) ?? {};
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...(entry.namespace ? { namespace: entry.namespace } : {}),
    connectionAuth: async () => {
      const auth = await connectionAuthOf(config, proxy);
      return { ...auth, headers: { ...auth.headers, ...impersonation } };
    },
  };
}

/** @throws CodedError `KubeconfigInvalid`, also for a user or password that cannot be decoded. */
function checkProxy(url: string, cluster: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    const found = parsed
      ? `has the scheme ${quote(parsed.protocol.slice(0, -1))}, which is not supported`
      : 'is not a URL';
    throw new CodedError(
      'KubeconfigInvalid',
      `kubeconfig: the proxy-url of cluster ${quote(cluster)} ${found}; it must begin with http:// or https://`,
    );
  }
  const { username, password } = parsed;
  try {
    decodeURIComponent(`${username}${password}`);
  } catch {
    throw new CodedError(
      'KubeconfigInvalid',
      `kubeconfig: the proxy-url of cluster ${quote(cluster)} has a user or password that is not percent-encoded; write % as %25`,
    );
  }
}

async function connectionAuthOf(config: KubeConfig, proxy: string | undefined): Promise<ConnectionAuth> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    // The message of Node shows what the plugin printed, which may be a token.
    if (error instanceof SyntaxError)
      throw new CodedError(
        'KubeconfigInvalid',
        `the exec plugin ${quote(config.getCurrentUser()?.exec?.command ?? '')} printed no ExecCredential; run it to see what it prints`,
      );
    throw error;
  }
  const headers: Record<string, string> = {};
  // A token file may end with a newline, which an HTTP header may not have.
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value).trim();
  if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return { tls: { ...tlsOf(options), ...(proxy === undefined ? {} : { proxy }) }, headers };
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

/** Rejects with CodedError `KubeconfigMissing` if none exists. */
async function existingPaths(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) if (await exists(path)) found.push(path);
  if (found.length > 0) return found;
  throw new CodedError(
    'KubeconfigMissing',
    `no cluster to connect to: found none of: ${paths.map((path) => quote(path, 256)).join(', ')}; ` +
      'set --kubeconfig or KUBECONFIG, or run inside a cluster',
  );
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

import { type Flag, type FlagName, flags, parseFlags, UsageError } from './flags.ts';
import { parseGoDuration } from './kit/go-duration.ts';

/** Everything that can be set from outside, read once at start and frozen. */
export interface Config {
  /** The halves that run. */
  readonly features: readonly FeatureName[];
  /** One file by flag, or the search path of `$KUBECONFIG`; neither: in-cluster credentials, then `~/.kube/config`. */
  readonly kubeconfig: { readonly file?: string; readonly paths?: string; readonly context?: string };
  /** Port of the admission webhooks (HTTPS). 0 takes a free one. */
  readonly port: number;
  readonly bindAddress: string;
  /** Where the serving certificate comes from: two files, or a Secret that the server makes and renews itself. */
  readonly certificates: 'files' | 'own';
  readonly certFile: string;
  readonly keyFile: string;
  /** Name of the Secret, in `leaseNamespace`. */
  readonly certificateSecret: string;
  /** DNS names and IPv4 addresses that the certificate is made for; the API server asks for the first, as a rule. */
  readonly certificateNames: readonly string[];
  /** Names of the webhook configurations, of both kinds, that are told the authority. */
  readonly webhookConfigurations: readonly string[];
  /** Of `/healthz` and `/readyz` (HTTP). Port 0 takes a free one, here as elsewhere. */
  readonly health: { readonly host: string; readonly port: number };
  /** Port of `/metrics` (HTTP). */
  readonly metricsPort: number;
  /** File that audit lines are appended to; `-` is standard output. */
  readonly auditLog: string;
  readonly leaderElect: boolean;
  /** Namespace of the access half's lease, the Secrets that replicas share and the audit heads. */
  readonly leaseNamespace: string;
  /** The binding half's. That of the access half has a fixed name. */
  readonly bindingLease: { readonly namespace: string; readonly name: string };
  /** For the inventory half. */
  readonly inventory: InventoryConfig;
  /** How often exports are listed while they cannot be watched, milliseconds. */
  readonly pollingMs: number;
  /** What providers may bind here, as `<resource>.<group>`; undefined: anything. */
  readonly bindable: readonly string[] | undefined;
  /** The binding half writes nothing. */
  readonly dryRun: boolean;
  /** The namespaces that providers may have made here; undefined: any. */
  readonly bindableNamespaces: readonly string[] | undefined;
  /** Grants that one user, or one namespace, may have open at once; 0 is no limit. */
  readonly maxGrantsPerUser: number;
  readonly maxGrantsPerNamespace: number;
  /** File with what templates may hand out besides what every grant gives; absent: nothing. */
  readonly grantable: string | undefined;
  /** Whether templates that name no author give grants. */
  readonly trustExistingTemplates: boolean;
  /** Name of this replica in leases and audit lines. */
  readonly identity: string;
  /** Whoever is in it may enter every access pod; undefined: nobody may. */
  readonly breakGlassGroup: string | undefined;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** `revoke-all` gives up after this long. */
  readonly timeoutMs: number;
}

export interface InventoryConfig {
  /** Where components report to, without a slash at the end; they are configured with it, too. */
  readonly callbackUrl: string;
  /** Port of the listener behind it: HTTPS, or HTTP if the URL says so. */
  readonly callbackPort: number;
  /** URL of the API server that components are given; undefined: the one that this process uses. */
  readonly apiUrl: string | undefined;
  /** Whether components, and the callback URL, may be plain http on loopback addresses. */
  readonly allowLoopbackHttp: boolean;
}

export type FeatureName = 'access' | 'binding' | 'inventory';
export type LogLevel = 'error' | 'warn' | 'info' | 'debug';
export type LogFormat = 'json' | 'text';

const allFeatures: readonly FeatureName[] = ['access', 'binding', 'inventory'];

/** What kube-bind's konnector takes when it is not told. */
const konnectorDefaults = { healthPort: 8090, leaseNamespace: 'kube-system' };
/** From here on klog tells what only developers want to know. */
const klogDebug = 4;

const accessWebhooks: readonly string[] = [
  'drawbridge-execaccessrequests',
  'drawbridge-execaccesstemplates',
  'drawbridge-podaccessrequests',
  'drawbridge-podaccesstemplates',
  'drawbridge-pods',
];
const inventoryWebhooks: readonly string[] = ['drawbridge-clusterinventories', 'drawbridge-componentreconcilers'];

/**
 * Reads flags and environment.
 * @throws UsageError naming the flag, what was found and what is allowed.
 */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const given = parseFlags(args);
  /** What was given by flag or environment. */
  const told = (name: FlagName): string | undefined => {
    const { env: variable } = flags[name] as Flag;
    return given[name] ?? (variable === undefined ? undefined : env[variable]);
  };
  const read = (name: FlagName): string | undefined => told(name) ?? flags[name].fallback;
  const text = (name: FlagName): string => {
    const value = read(name);
    if (value === undefined || value === '') throw new UsageError(`--${name} must not be empty`);
    return value;
  };
  const port = (name: FlagName, value = text(name)): number => {
    if (!/^\d{1,5}$/.test(value) || Number(value) > 65535) {
      throw new UsageError(`--${name} is "${value}"; it must be a port number from 0 to 65535`);
    }
    return Number(value);
  };
  const count = (name: FlagName): number => {
    const value = text(name);
    if (!/^\d{1,6}$/.test(value)) {
      throw new UsageError(`--${name} is "${value}"; it must be a number from 0 to 999999, where 0 is no limit`);
    }
    return Number(value);
  };
  const oneOf = <T extends string>(name: FlagName, allowed: readonly T[]): T => {
    const value = text(name);
    const found = allowed.find((candidate) => candidate === value);
    if (found === undefined) throw new UsageError(`--${name} is "${value}"; it must be one of ${allowed.join(', ')}`);
    return found;
  };
  const duration = (name: FlagName): number => {
    const parsed = parseGoDuration(text(name));
    if ('error' in parsed) throw new UsageError(`--${name}: ${parsed.error}`);
    return Number(parsed.ns / 1_000_000n);
  };
  const names = (name: FlagName, fallback: readonly string[]): readonly string[] => {
    const found = (read(name) ?? fallback.join()).split(',');
    const wrong = found.find((one) => one.length > 253 || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(one));
    if (wrong === undefined) return Object.freeze(found);
    throw new UsageError(
      `--${name} holds "${wrong}"; it must be names of small letters, digits, - and ., with commas between`,
    );
  };
  const features = readFeatures(text('features'));
  /** The binding half alone takes the place of a konnector of kube-bind. */
  const alone = features.every((feature) => feature === 'binding');
  const leaseNamespace =
    alone && !told('lease-namespace')
      ? env['POD_NAMESPACE'] || konnectorDefaults.leaseNamespace
      : text('lease-namespace');
  const bindAddress = text('bind-address');
  const health = (): Config['health'] => {
    const address = told('server-address');
    if (address) {
      const [, host, number] = /^(.*):(\d+)$/.exec(address) ?? [];
      if (number === undefined) throw new UsageError(`--server-address is "${address}"; it must be [HOST]:PORT`);
      return { host: host?.replace(/^\[(.*)\]$/, '$1') || bindAddress, port: port('server-address', number) };
    }
    const fallback = alone && told('health-port') === undefined;
    return { host: bindAddress, port: fallback ? konnectorDefaults.healthPort : port('health-port') };
  };
  const logFormat =
    told('log-format') === undefined && told('logging-format') !== undefined ? 'logging-format' : 'log-format';
  const inventory = Object.freeze(
    readInventory({
      callbackUrl: told('callback-url') || `https://drawbridge-callbacks.${leaseNamespace}.svc`,
      callbackPort: port('callback-port'),
      apiUrl: told('component-api-url') || undefined,
      allowLoopbackHttp: oneOf('allow-loopback-http', ['true', 'false']) === 'true',
    }),
  );
  const withInventory = features.includes('inventory');
  const isVerbose = told('log-level') === undefined && verbosity(told('v') ?? '0') >= klogDebug;
  return Object.freeze({
    features,
    kubeconfig: readKubeconfig(given.kubeconfig, env[flags.kubeconfig.env], told('context')),
    port: port('port'),
    bindAddress,
    certFile: text('cert-file'),
    keyFile: text('key-file'),
    certificates: oneOf('certificates', ['files', 'own']),
    certificateSecret: text('certificate-secret'),
    certificateNames: names('certificate-names', [
      `drawbridge-webhook.${leaseNamespace}.svc`,
      ...(withInventory && isNamed(inventory.callbackUrl) ? [new URL(inventory.callbackUrl).hostname] : []),
    ]),
    webhookConfigurations: names('webhook-configurations', [
      ...(features.includes('access') || !withInventory ? accessWebhooks : []),
      ...(withInventory ? inventoryWebhooks : []),
    ]),
    health: Object.freeze(health()),
    // Nobody scrapes a konnector of kube-bind, and two of them run on one host.
    metricsPort: alone && told('metrics-port') === undefined ? 0 : port('metrics-port'),
    auditLog: text('audit-log'),
    leaderElect: oneOf('leader-elect', ['true', 'false']) === 'true',
    leaseNamespace,
    bindingLease: Object.freeze({
      namespace: told('binding-lease-namespace') || leaseNamespace,
      name: text('lease-name'),
    }),
    inventory,
    pollingMs: atLeast(1000, 'provider-polling-interval', duration('provider-polling-interval')),
    bindable: told('bindable') ? names('bindable', []) : undefined,
    dryRun: readDryRun(oneOf('dry-run', ['true', 'false']) === 'true', features),
    bindableNamespaces: told('bindable-namespaces') ? names('bindable-namespaces', []) : undefined,
    maxGrantsPerUser: count('max-grants-per-user'),
    maxGrantsPerNamespace: count('max-grants-per-namespace'),
    grantable: read('grantable') || undefined,
    trustExistingTemplates: oneOf('trust-existing-templates', ['true', 'false']) === 'true',
    identity: read('identity') || readPodName(features, env) || `${env['HOSTNAME'] || 'drawbridge'}-${process.pid}`,
    breakGlassGroup: read('break-glass-group') || undefined,
    logLevel: isVerbose ? 'debug' : oneOf('log-level', ['error', 'warn', 'info', 'debug']),
    logFormat: oneOf(logFormat, ['json', 'text']),
    timeoutMs: duration('timeout'),
  });
}

function readFeatures(value: string): readonly FeatureName[] {
  const found = value.split(',').map((name) => {
    const feature = allFeatures.find((known) => known === name.trim());
    if (feature) return feature;
    throw new UsageError(
      `--features is "${value}"; it must be ${allFeatures.join(' or ')}, or several with commas between`,
    );
  });
  return Object.freeze(allFeatures.filter((feature) => found.includes(feature)));
}

/** Nobody should believe that the other half writes nothing either. */
function readDryRun(dryRun: boolean, features: readonly FeatureName[]): boolean {
  if (!dryRun || features.every((feature) => feature === 'binding')) return dryRun;
  throw new UsageError('--dry-run is for the binding half alone; give --features=binding as well');
}

function readInventory({ callbackUrl, apiUrl, ...rest }: InventoryConfig): InventoryConfig {
  const callback = readUrl('callback-url', callbackUrl);
  const mayBeHttp = rest.allowLoopbackHttp && loopbackHosts.has(callback.hostname);
  if (callback.protocol !== 'https:' && !mayBeHttp) {
    throw new UsageError(
      `--callback-url is "${callbackUrl}"; it must be https, or http on a loopback address with --allow-loopback-http=true`,
    );
  }
  if (apiUrl !== undefined && readUrl('component-api-url', apiUrl).protocol !== 'https:') {
    throw new UsageError(`--component-api-url is "${apiUrl}"; it must be https`);
  }
  return { callbackUrl: callbackUrl.replace(/\/+$/, ''), apiUrl: apiUrl?.replace(/\/+$/, ''), ...rest };
}

const loopbackHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** A certificate can be made for its host. */
const isNamed = (url: string): boolean => url.startsWith('https://') && !url.startsWith('https://[');

/** Absolute, of HTTP, and nothing in it but scheme, host, port and path. */
function readUrl(name: FlagName, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text)) return url;
  throw new UsageError(`--${name} is "${text}"; it must be a URL such as https://drawbridge.example.org`);
}

function verbosity(value: string): number {
  if (/^-?\d{1,9}$/.test(value)) return Number(value);
  throw new UsageError(`-v is "${value}"; it must be a number`);
}

function atLeast(leastMs: number, name: FlagName, ms: number): number {
  if (ms >= leastMs) return ms;
  throw new UsageError(`--${name} is too short; it must be at least ${leastMs / 1000} s`);
}

/** Konnectors of kube-bind go by it in their lease. */
const readPodName = (features: readonly FeatureName[], env: Readonly<Record<string, string | undefined>>) =>
  features.includes('binding') ? env['POD_NAME'] : undefined;

/** The search path for kubeconfig files, as kubectl reads it. */
export const kubeconfigPaths = (): string | undefined => process.env['KUBECONFIG'];

/** The flag names one file, even with a colon in it; the variable is a list, as kubectl reads it. */
function readKubeconfig(
  file: string | undefined,
  paths: string | undefined,
  context: string | undefined,
): Config['kubeconfig'] {
  if (file === '') throw new UsageError('--kubeconfig must not be empty');
  const named = context ? { context } : {};
  if (file !== undefined) return { file, ...named };
  return paths ? { paths, ...named } : named;
}

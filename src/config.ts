import { isIP } from 'node:net';
import { UsageError } from './flag-types.ts';
import { type Flags, type FlagValue, readFlags } from './flags.ts';

/** The configuration from flags and environment; read once at start and frozen. */
export interface Config {
  /** The features to run. */
  readonly features: readonly FeatureName[];
  /** One file by flag, or the search path of `$KUBECONFIG`; neither: in-cluster credentials, then `~/.kube/config`. */
  readonly kubeconfig: { readonly file?: string; readonly paths?: string; readonly context?: string };
  /** Port of the access and inventory webhooks (HTTPS). 0 selects a free port. */
  readonly port: number;
  /** Address that every port listens on, except that `health` may have its own. */
  readonly bindAddress: string;
  /** Source of the serving certificate: two files, or a Secret that the server creates and renews. */
  readonly certificates: FlagValue<'certificates'>;
  /** With certificates from files: the serving certificate chain and its private key, PEM. */
  readonly certFile: string;
  readonly keyFile: string;
  /** File with authorities (PEM) for the client certificates that callers of the webhooks must present; undefined: none required. */
  readonly clientCaFile: string | undefined;
  /** Name of the Secret of `own` certificates, in `leaseNamespace`. */
  readonly certificateSecret: string;
  /** With `own` certificates: DNS names and IPv4 addresses of the certificate. */
  readonly certificateNames: readonly string[];
  /** With `own` certificates: names of the webhook configurations, of both kinds, whose caBundle and paths the server writes. */
  readonly webhookConfigurations: readonly string[];
  /** Address of `/healthz`, `/livez`, and `/readyz` (HTTP). Port 0 selects a free port. */
  readonly health: { readonly host: string; readonly port: number };
  /** Port of `/metrics` (HTTP). 0 selects a free port. */
  readonly metricsPort: number;
  /** File of the audit journal; `-` is standard output. */
  readonly auditLog: string;
  /** Whether the replicas elect a leader. False only for a single replica. */
  readonly leaderElect: boolean;
  /** Namespace of the Secrets that replicas share, of the audit heads, and of all Leases but that of binding. */
  readonly leaseNamespace: string;
  /** Lease of the binding feature. */
  readonly bindingLease: { readonly namespace: string; readonly name: string };
  readonly inventory: InventoryConfig;
  /** Port of the gateway's aggregated API (HTTPS). 0 selects a free port. */
  readonly gatewayPort: number;
  /** Address at which other replicas of the gateway reach this one, without a port; undefined: they cannot. */
  readonly peerAddress: string | undefined;
  /** Where the gateway stores recordings of sessions; undefined: it records none. */
  readonly recordings: RecordingsConfig | undefined;
  /** Time since the last byte of a recording after which the gateway deletes it, milliseconds. */
  readonly recordingRetentionMs: number;
  /** How often the server lists exports that it cannot watch, milliseconds. */
  readonly pollingMs: number;
  /** Exported resources that bindings may bind into this cluster, as `<resource>.<group>`; undefined: any. */
  readonly bindable: readonly string[] | undefined;
  /** Whether the binding feature changes nothing, and logs what it would write. */
  readonly dryRun: boolean;
  /** Namespaces that the server may create in this cluster for providers; undefined: any. */
  readonly bindableNamespaces: readonly string[] | undefined;
  /** Maximum number of open grants of one user and of one namespace; 0 means no limit. */
  readonly maxGrantsPerUser: number;
  readonly maxGrantsPerNamespace: number;
  /** File with the rules that templates may grant in addition to those of every grant; undefined: none. */
  readonly grantable: string | undefined;
  /** `confined`: access pods keep the labels by which NetworkPolicies select their workload. `oz`: access pods are what Oz creates. */
  readonly accessPods: FlagValue<'access-pods'>;
  /** Whether the server grants through templates without an author, unless they allow a privileged pod. */
  readonly trustExistingTemplates: boolean;
  /** Whether the server uses key Secrets that existed before its first start, even if nothing proves that it used their keys. */
  readonly adoptSigningKeys: boolean;
  /** Name of this replica in Leases, Events, audit lines, and audit heads. */
  readonly identity: string;
  /** Members of this group may enter access pods without a grant, if RBAC allows it; undefined: no such group. */
  readonly breakGlassGroup: string | undefined;
  readonly logLevel: FlagValue<'log-level'>;
  readonly logFormat: FlagValue<'log-format'>;
  /** Timeout of `revoke-all`, milliseconds. */
  readonly timeoutMs: number;
}

/** The flags of the inventory feature. */
export interface InventoryConfig {
  /** Base URL that components report to, without a trailing slash. */
  readonly callbackUrl: string;
  /** Port of the listener for callbackUrl: HTTPS, or HTTP if the URL is http. */
  readonly callbackPort: number;
  /** URL of the API server that components get; undefined: the one that this process uses. */
  readonly apiUrl: string | undefined;
  /** Whether the URLs of components and callbackUrl may be plain http on loopback addresses. */
  readonly allowLoopbackHttp: boolean;
}

/** A folder, or a place in a bucket: see `S3Location`. */
export type RecordingsConfig =
  | { readonly folder: string }
  | {
      readonly bucket: string;
      readonly prefix: string;
      readonly region: string;
      readonly endpoint: string | undefined;
    };

/** `access`, `binding`, `inventory`, or `gateway`. */
export type FeatureName = FlagValue<'features'>[number];

/** Defaults of kube-bind's konnector. */
const konnectorDefaults = { healthPort: 8090, leaseNamespace: 'kube-system' };
/** klog's lowest level of debug output. */
const klogDebug = 4;

const accessWebhooks: readonly string[] = [
  'drawbridge-accessvotes',
  'drawbridge-execaccessrequests',
  'drawbridge-execaccesstemplates',
  'drawbridge-podaccessrequests',
  'drawbridge-podaccesstemplates',
  'drawbridge-pods',
];
const inventoryWebhooks: readonly string[] = ['drawbridge-clusterinventories', 'drawbridge-componentreconcilers'];

/**
 * Reads flags and environment.
 * @throws UsageError naming the flag or the variable, what was found, and what is allowed.
 */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const { given, value, origin } = readFlags(args, env);
  const features = value('features');
  /** Without other features, binding replaces a konnector of kube-bind, so it takes the konnector's defaults. */
  const bindingOnly = features.every((feature) => feature === 'binding');
  const leaseNamespace =
    bindingOnly && !given('lease-namespace')?.text
      ? env['POD_NAMESPACE'] || konnectorDefaults.leaseNamespace
      : value('lease-namespace');
  const bindAddress = value('bind-address');
  const health = (): Config['health'] => {
    const address = value('server-address');
    if (address) return { host: address.host || bindAddress, port: address.port };
    const isDefault = bindingOnly && !given('health-port');
    return { host: bindAddress, port: isDefault ? konnectorDefaults.healthPort : value('health-port') };
  };
  const inventory = Object.freeze(
    readInventory(
      {
        callbackUrl: value('callback-url') ?? `https://drawbridge-callbacks.${leaseNamespace}.svc`,
        callbackPort: value('callback-port'),
        apiUrl: value('component-api-url'),
        allowLoopbackHttp: value('allow-loopback-http'),
      },
      origin,
    ),
  );
  const withInventory = features.includes('inventory');
  const withGateway = features.includes('gateway');
  const withAccess = features.includes('access');
  const isVerbose = !given('log-level') && (value('v') ?? 0) >= klogDebug;
  return Object.freeze({
    features,
    kubeconfig: readKubeconfig(given('kubeconfig'), value('context')),
    port: value('port'),
    bindAddress,
    certFile: value('cert-file'),
    keyFile: value('key-file'),
    certificates: value('certificates'),
    clientCaFile: value('client-ca-file'),
    certificateSecret: value('certificate-secret'),
    certificateNames: value('certificate-names') ?? [
      ...(withAccess ? [`drawbridge-webhook.${leaseNamespace}.svc`] : []),
      ...(withInventory ? [`drawbridge-inventory-webhook.${leaseNamespace}.svc`] : []),
      ...(withInventory && hasCertifiableHost(inventory.callbackUrl) ? [new URL(inventory.callbackUrl).hostname] : []),
      ...(withGateway ? [`drawbridge-gateway.${leaseNamespace}.svc`] : []),
    ],
    webhookConfigurations: value('webhook-configurations') ?? [
      ...(withAccess ? accessWebhooks : []),
      ...(withInventory ? inventoryWebhooks : []),
    ],
    health: Object.freeze(health()),
    // A konnector of kube-bind has no metrics port, and two of them may run on one host, so the default is any free port.
    metricsPort: bindingOnly && !given('metrics-port') ? 0 : value('metrics-port'),
    auditLog: value('audit-log'),
    leaderElect: value('leader-elect'),
    leaseNamespace,
    bindingLease: Object.freeze({
      namespace: value('binding-lease-namespace') ?? leaseNamespace,
      name: value('lease-name'),
    }),
    inventory,
    gatewayPort: value('gateway-port'),
    peerAddress: readPeerAddress(value('peer-address'), bindAddress, origin),
    recordings: readRecordings(value('recordings'), value('s3-endpoint'), value('s3-region'), origin),
    recordingRetentionMs: value('recording-retention'),
    pollingMs: value('provider-polling-interval'),
    bindable: value('bindable'),
    dryRun: readDryRun(value('dry-run'), features, origin),
    bindableNamespaces: value('bindable-namespaces'),
    maxGrantsPerUser: value('max-grants-per-user'),
    maxGrantsPerNamespace: value('max-grants-per-namespace'),
    grantable: value('grantable'),
    accessPods: value('access-pods'),
    trustExistingTemplates: value('trust-existing-templates'),
    adoptSigningKeys: value('adopt-signing-keys'),
    identity: value('identity') || podName(features, env) || `${env['HOSTNAME'] || 'drawbridge'}-${process.pid}`,
    breakGlassGroup: value('break-glass-group'),
    logLevel: isVerbose ? 'debug' : value('log-level'),
    logFormat: (given('log-format') ? undefined : value('logging-format')) ?? value('log-format'),
    timeoutMs: value('timeout'),
  });
}

/** Addresses that mean every interface, so that no peer can connect to them. */
const wildcards: readonly string[] = ['0.0.0.0', '::'];

/** The address for peers. It must be an IP address, because an admission policy allows no other text in the Lease of a replica. */
function readPeerAddress(given: string | undefined, bindAddress: string, origin: Flags['origin']): string | undefined {
  if (given === undefined) return isIP(bindAddress) && !wildcards.includes(bindAddress) ? bindAddress : undefined;
  if (isIP(given) && !wildcards.includes(given)) return given;
  throw new UsageError(
    `${origin('peer-address')} is "${given}"; it must be an IP address of this replica, such as 10.0.0.7`,
  );
}

/** Rejects --dry-run with other features, because they would still write. */
function readDryRun(dryRun: boolean, features: readonly FeatureName[], origin: Flags['origin']): boolean {
  if (!dryRun || features.every((feature) => feature === 'binding')) return dryRun;
  throw new UsageError(
    `${origin('dry-run')} is given; it works only if binding runs alone; remove it, or start another server with --features=binding`,
  );
}

function readInventory({ callbackUrl, apiUrl, ...rest }: InventoryConfig, origin: Flags['origin']): InventoryConfig {
  const callback = readUrl(origin('callback-url'), callbackUrl, 'http or https');
  const mayBeHttp = rest.allowLoopbackHttp && loopbackHosts.has(callback.hostname);
  if (callback.protocol !== 'https:' && !mayBeHttp) {
    throw new UsageError(
      `${origin('callback-url')} is "${callbackUrl}"; it must be https, or http on a loopback address with --allow-loopback-http=true`,
    );
  }
  if (apiUrl !== undefined) readUrl(origin('component-api-url'), apiUrl, 'https');
  return { callbackUrl: callbackUrl.replace(/\/+$/, ''), apiUrl: apiUrl?.replace(/\/+$/, ''), ...rest };
}

const loopbackHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Whether the server's certificate can name the host of the URL: an https URL without an IPv6 address. */
const hasCertifiableHost = (url: string): boolean => url.startsWith('https://') && !url.startsWith('https://[');

function readRecordings(
  text: string | undefined,
  endpoint: string | undefined,
  region: string | undefined,
  origin: Flags['origin'],
): RecordingsConfig | undefined {
  if (!text?.startsWith('s3:')) return text === undefined ? undefined : { folder: text };
  const [, bucket, path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[\w-][\w.-]*)*)\/?$/.exec(text) ?? [];
  if (bucket === undefined)
    throw new UsageError(
      `${origin('recordings')} is "${text}"; it must be a folder, s3://BUCKET, or s3://BUCKET/PREFIX; BUCKET has 3 to 63 lowercase letters, digits, -, and ., and starts and ends with a letter or digit; PREFIX has letters, digits, _, -, ., and single slashes, and no part of it starts with a .`,
    );
  if (endpoint !== undefined) readUrl(origin('s3-endpoint'), endpoint, 'https');
  if (endpoint === undefined && region === undefined)
    throw new UsageError(
      `${origin('recordings')} is "${text}" without a region; pass --s3-region, or --s3-endpoint for a server other than that of AWS`,
    );
  return { bucket, prefix: path.slice(1), region: region ?? 'us-east-1', endpoint };
}

/** Parses an absolute URL that has only one of the schemes, a host, port, and path. @throws UsageError for any other text. */
function readUrl(origin: string, text: string, schemes: 'https' | 'http or https'): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && schemes === 'http or https');
  if (url && isAllowed && !/[?#@]/.test(text)) return url;
  throw new UsageError(
    `${origin} is "${text}"; it must be an ${schemes} URL without user, query, and fragment, such as https://drawbridge.example.org`,
  );
}

/** Konnectors of kube-bind use the Pod name as their identity in the Lease. */
const podName = (features: readonly FeatureName[], env: Readonly<Record<string, string | undefined>>) =>
  features.includes('binding') ? env['POD_NAME'] : undefined;

/** The search path for kubeconfig files, as kubectl reads it. */
export const kubeconfigPaths = (): string | undefined => process.env['KUBECONFIG'];

/** The flag names one file, even if its text contains a colon. The variable is a search path, as for kubectl. */
function readKubeconfig(given: ReturnType<Flags['given']>, context: string | undefined): Config['kubeconfig'] {
  const contextOption = context ? { context } : {};
  if (given?.by === 'flag') {
    if (given.text === '') throw new UsageError('--kubeconfig must not be empty');
    return { file: given.text, ...contextOption };
  }
  return given?.text ? { paths: given.text, ...contextOption } : contextOption;
}

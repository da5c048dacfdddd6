import { UsageError } from './flag-types.ts';
import { type FlagName, type Flags, type FlagValue, readFlags } from './flags.ts';

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
  readonly certificates: FlagValue<'certificates'>;
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities (PEM) whose client certificates callers of the webhooks have to show; undefined: none. */
  readonly clientCaFile: string | undefined;
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
  /** Namespace of the Leases of access and inventory, the Secrets that replicas share and the audit heads. */
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
  /** Whether access pods stay as confined as their workload, or are what Oz makes. */
  readonly accessPods: FlagValue<'access-pods'>;
  /** Whether templates that name no author give grants. */
  readonly trustExistingTemplates: boolean;
  /** Whether Secrets of keys are used that were there before the first start. */
  readonly adoptSigningKeys: boolean;
  /** Name of this replica in leases and audit lines. */
  readonly identity: string;
  /** Whoever is in it may enter every access pod; undefined: nobody may. */
  readonly breakGlassGroup: string | undefined;
  readonly logLevel: FlagValue<'log-level'>;
  readonly logFormat: FlagValue<'log-format'>;
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

export type FeatureName = FlagValue<'features'>[number];

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
  const { given, value } = readFlags(args, env);
  const features = value('features');
  /** The binding half alone takes the place of a konnector of kube-bind. */
  const alone = features.every((feature) => feature === 'binding');
  const leaseNamespace =
    alone && !given('lease-namespace')?.text
      ? env['POD_NAMESPACE'] || konnectorDefaults.leaseNamespace
      : value('lease-namespace');
  const bindAddress = value('bind-address');
  const health = (): Config['health'] => {
    const address = value('server-address');
    if (address) return { host: address.host || bindAddress, port: address.port };
    const fallback = alone && !given('health-port');
    return { host: bindAddress, port: fallback ? konnectorDefaults.healthPort : value('health-port') };
  };
  const inventory = Object.freeze(
    readInventory({
      callbackUrl: value('callback-url') ?? `https://drawbridge-callbacks.${leaseNamespace}.svc`,
      callbackPort: value('callback-port'),
      apiUrl: value('component-api-url'),
      allowLoopbackHttp: value('allow-loopback-http'),
    }),
  );
  const withInventory = features.includes('inventory');
  const withAccess = features.includes('access') || !withInventory;
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
    ],
    webhookConfigurations: value('webhook-configurations') ?? [
      ...(withAccess ? accessWebhooks : []),
      ...(withInventory ? inventoryWebhooks : []),
    ],
    health: Object.freeze(health()),
    // Nobody scrapes a konnector of kube-bind, and two of them run on one host.
    metricsPort: alone && !given('metrics-port') ? 0 : value('metrics-port'),
    auditLog: value('audit-log'),
    leaderElect: value('leader-elect'),
    leaseNamespace,
    bindingLease: Object.freeze({
      namespace: value('binding-lease-namespace') ?? leaseNamespace,
      name: value('lease-name'),
    }),
    inventory,
    pollingMs: value('provider-polling-interval'),
    bindable: value('bindable'),
    dryRun: readDryRun(value('dry-run'), features),
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
const hasCertifiableHost = (url: string): boolean => url.startsWith('https://') && !url.startsWith('https://[');

/** Absolute, of HTTP, and nothing in it but scheme, host, port and path. */
function readUrl(name: FlagName, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text)) return url;
  throw new UsageError(`--${name} is "${text}"; it must be a URL such as https://drawbridge.example.org`);
}

/** Konnectors of kube-bind go by it in their lease. */
const podName = (features: readonly FeatureName[], env: Readonly<Record<string, string | undefined>>) =>
  features.includes('binding') ? env['POD_NAME'] : undefined;

/** The search path for kubeconfig files, as kubectl reads it. */
export const kubeconfigPaths = (): string | undefined => process.env['KUBECONFIG'];

/** The flag names one file, even with a colon in it; the variable is a list, as kubectl reads it. */
function readKubeconfig(given: ReturnType<Flags['given']>, context: string | undefined): Config['kubeconfig'] {
  const named = context ? { context } : {};
  if (given?.by === 'flag') {
    if (given.text === '') throw new UsageError('--kubeconfig must not be empty');
    return { file: given.text, ...named };
  }
  return given?.text ? { paths: given.text, ...named } : named;
}

import { isPeerAddress, UsageError, url } from './flag-types.ts';
import { type Flags, type FlagValues, readFlags } from './flags.ts';
import type { AmbientOptions } from './kube/kubeconfig.ts';

/** The flags, with their defaults that depend on other flags; read once at start and frozen. */
export type Config = ReturnType<typeof readConfig>;

/** `access`, `binding`, `inventory`, `gateway`, or `notify`. */
export type FeatureName = FlagValues['features'][number];

type Environment = Readonly<Record<string, string | undefined>>;

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
export function readConfig(args: readonly string[], env: Environment = process.env) {
  const flags = readFlags(args, env);
  const { v, loggingFormat, healthPort, serverAddress, s3Endpoint, s3Region, context, ...values } = flags.values;
  const { features, bindAddress } = values;
  const has = (feature: FeatureName): boolean => features.includes(feature);
  // Binding alone replaces a konnector of kube-bind, so it takes the konnector's defaults.
  const bindingOnly = features.every((feature) => feature === 'binding');
  if (values.dryRun && !bindingOnly) throw dryRunWithOthers(flags);
  const leaseNamespace =
    values.leaseNamespace ?? (bindingOnly ? env['POD_NAMESPACE'] || 'kube-system' : 'drawbridge-system');
  const callbackUrl = readCallbackUrl(flags, leaseNamespace);
  return Object.freeze({
    ...values,
    kubeconfig: readKubeconfig(flags),
    leaseNamespace,
    bindingLeaseNamespace: values.bindingLeaseNamespace ?? leaseNamespace,
    certificateNames: values.certificateNames ?? [
      ...(has('access') ? [`drawbridge-webhook.${leaseNamespace}.svc`] : []),
      ...(has('inventory') ? [`drawbridge-inventory-webhook.${leaseNamespace}.svc`] : []),
      ...(has('inventory') && hasCertifiableHost(callbackUrl) ? [new URL(callbackUrl).hostname] : []),
      ...(has('gateway') ? [`drawbridge-gateway.${leaseNamespace}.svc`] : []),
    ],
    webhookConfigurations: values.webhookConfigurations ?? [
      ...(has('access') ? accessWebhooks : []),
      ...(has('inventory') ? inventoryWebhooks : []),
    ],
    health: serverAddress
      ? { host: serverAddress.host || bindAddress, port: serverAddress.port }
      : { host: bindAddress, port: healthPort ?? (bindingOnly ? 8090 : 8081) },
    // A konnector has no metrics port, and two of them may run on one host.
    metricsPort: values.metricsPort ?? (bindingOnly ? 0 : 8080),
    callbackUrl: withoutSlash(callbackUrl),
    componentApiUrl: values.componentApiUrl && withoutSlash(values.componentApiUrl),
    peerAddress: values.peerAddress ?? (isPeerAddress(bindAddress) ? bindAddress : undefined),
    recordings: readRecordings(flags),
    // Konnectors of kube-bind use the Pod name as their identity in the Lease.
    identity:
      values.identity || (has('binding') && env['POD_NAME']) || `${env['HOSTNAME'] || 'drawbridge'}-${process.pid}`,
    logLevel: values.logLevel ?? ((v ?? 0) >= klogDebug ? 'debug' : 'info'),
    logFormat: values.logFormat ?? loggingFormat ?? 'json',
  });
}

/** The other features would still write. */
const dryRunWithOthers = ({ origin }: Flags): UsageError =>
  new UsageError(
    `${origin('dry-run')} is given; it works only if binding runs alone; remove it, or start another server with --features=binding`,
  );

function readCallbackUrl({ values, origin }: Flags, namespace: string): string {
  const callbackUrl = values.callbackUrl ?? `https://drawbridge-callbacks.${namespace}.svc`;
  // The namespace may contain anything.
  url('http or https').parse(callbackUrl, origin('callback-url'));
  const { protocol, hostname } = new URL(callbackUrl);
  if (protocol === 'https:' || (values.allowLoopbackHttp && loopbackHosts.has(hostname))) return callbackUrl;
  throw new UsageError(
    `${origin('callback-url')} is "${callbackUrl}"; it must be https, or http on a loopback address with --allow-loopback-http=true`,
  );
}

const loopbackHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

const withoutSlash = (text: string): string => text.replace(/\/+$/, '');

/** Whether a certificate can name the host: that of an https URL, but no IPv6 address. */
const hasCertifiableHost = (text: string): boolean => text.startsWith('https://') && !text.startsWith('https://[');

function readRecordings({ values, origin }: Flags) {
  const { recordings: text, s3Endpoint: endpoint, s3Region: region } = values;
  if (!text?.startsWith('s3:')) return text === undefined ? undefined : { folder: text };
  const [, bucket, path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[\w-][\w.-]*)*)\/?$/.exec(text) ?? [];
  if (bucket === undefined)
    throw new UsageError(
      `${origin('recordings')} is "${text}"; it must be a folder, s3://BUCKET, or s3://BUCKET/PREFIX; BUCKET has 3 to 63 lowercase letters, digits, -, and ., and starts and ends with a letter or digit; PREFIX has letters, digits, _, -, ., and single slashes, and no part of it starts with a .`,
    );
  // Its variable may be meant for other programs, so it is checked only for a bucket.
  if (endpoint !== undefined) url('https').parse(endpoint, origin('s3-endpoint'));
  if (endpoint === undefined && region === undefined)
    throw new UsageError(
      `${origin('recordings')} is "${text}" without a region; pass --s3-region, or --s3-endpoint for a server other than that of AWS`,
    );
  return { bucket, prefix: path.slice(1), region: region ?? 'us-east-1', endpoint };
}

/** The search path for kubeconfig files, as kubectl reads it. */
export const kubeconfigPaths = (): string | undefined => process.env['KUBECONFIG'];

/** The flag names one file, even if it contains a colon. The variable is a search path. */
function readKubeconfig({ values: { context }, given }: Flags): AmbientOptions {
  const { text, by } = given('kubeconfig') ?? {};
  if (text === '' && by === 'flag') throw new UsageError('--kubeconfig must not be empty');
  return {
    ...(text && (by === 'flag' ? { file: text } : { paths: text })),
    ...(context && { context }),
  };
}

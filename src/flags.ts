import { parseArgs } from 'node:util';

/** A wrong flag or value: one line for the person who typed it; the process ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface Flag {
  /** Environment variable; absent for flags of kube-bind's konnector that are merely tolerated. */
  readonly env?: string;
  readonly fallback: string | undefined;
  readonly value: string;
  readonly help: string;
}

/** In the order of `--help`. */
export const flags = {
  features: {
    env: 'DRAWBRIDGE_FEATURES',
    fallback: 'access',
    value: 'NAMES',
    help: 'halves that run: access, binding, inventory, or several by commas',
  },
  kubeconfig: {
    env: 'KUBECONFIG',
    fallback: undefined,
    value: 'FILE',
    help: 'credentials of the cluster; default: in-cluster, then ~/.kube/config',
  },
  context: {
    env: 'DRAWBRIDGE_CONTEXT',
    fallback: undefined,
    value: 'NAME',
    help: 'context of the kubeconfig; default: the current one',
  },
  port: {
    env: 'DRAWBRIDGE_PORT',
    fallback: '9443',
    value: 'PORT',
    help: 'admission webhooks (HTTPS); 0 takes a free one',
  },
  'bind-address': {
    env: 'DRAWBRIDGE_BIND_ADDRESS',
    fallback: '0.0.0.0',
    value: 'ADDRESS',
    help: 'address of every port',
  },
  certificates: {
    env: 'DRAWBRIDGE_CERTIFICATES',
    fallback: 'files',
    value: 'files|own',
    help: 'serve the pair of the files below, or one that the server makes and renews',
  },
  'cert-file': {
    env: 'DRAWBRIDGE_CERT_FILE',
    fallback: '/etc/drawbridge/tls/tls.crt',
    value: 'FILE',
    help: 'serving certificate chain, PEM; reloaded when it changes',
  },
  'key-file': {
    env: 'DRAWBRIDGE_KEY_FILE',
    fallback: '/etc/drawbridge/tls/tls.key',
    value: 'FILE',
    help: 'its private key, PEM',
  },
  'certificate-secret': {
    env: 'DRAWBRIDGE_CERTIFICATE_SECRET',
    fallback: 'drawbridge-own-certificate',
    value: 'NAME',
    help: 'own: the Secret that holds it',
  },
  'certificate-names': {
    env: 'DRAWBRIDGE_CERTIFICATE_NAMES',
    fallback: undefined,
    value: 'NAMES',
    help: 'own: what it is for, by commas; default: drawbridge-webhook.NAMESPACE.svc',
  },
  'webhook-configurations': {
    env: 'DRAWBRIDGE_WEBHOOK_CONFIGURATIONS',
    fallback: undefined,
    value: 'NAMES',
    help: 'own: whose caBundle it writes, by commas; default: those of webhooks/',
  },
  'health-port': {
    env: 'DRAWBRIDGE_HEALTH_PORT',
    fallback: '8081',
    value: 'PORT',
    help: '/healthz and /readyz (HTTP); binding alone: 8090',
  },
  'metrics-port': {
    env: 'DRAWBRIDGE_METRICS_PORT',
    fallback: '8080',
    value: 'PORT',
    help: '/metrics (HTTP); binding alone: a free one',
  },
  'server-address': {
    env: 'DRAWBRIDGE_SERVER_ADDRESS',
    fallback: undefined,
    value: 'ADDRESS',
    help: 'address and port of /healthz in one, as :8090; wins over --health-port',
  },
  'audit-log': {
    env: 'DRAWBRIDGE_AUDIT_LOG',
    fallback: '-',
    value: 'FILE|-',
    help: 'one JSON line a decision; - is standard output',
  },
  'leader-elect': {
    env: 'DRAWBRIDGE_LEADER_ELECT',
    fallback: 'true',
    value: 'true|false',
    help: 'let one replica at a time write; false only for a single replica',
  },
  'lease-namespace': {
    env: 'DRAWBRIDGE_LEASE_NAMESPACE',
    fallback: 'drawbridge-system',
    value: 'NAME',
    help: 'of leases and shared objects; binding alone: $POD_NAMESPACE',
  },
  'binding-lease-namespace': {
    env: 'DRAWBRIDGE_BINDING_LEASE_NAMESPACE',
    fallback: undefined,
    value: 'NAME',
    help: 'binding: of its lease alone; default: --lease-namespace',
  },
  'lease-name': {
    env: 'DRAWBRIDGE_LEASE_NAME',
    fallback: 'kube-bind',
    value: 'NAME',
    help: 'binding: its lease, which konnectors of kube-bind share',
  },
  'provider-polling-interval': {
    env: 'DRAWBRIDGE_PROVIDER_POLLING_INTERVAL',
    fallback: '15s',
    value: 'DURATION',
    help: 'binding: how often exports are listed while unwatched',
  },
  bindable: {
    env: 'DRAWBRIDGE_BINDABLE',
    fallback: undefined,
    value: 'NAMES',
    help: 'binding: resource.group that providers may bind here, by commas; default: any',
  },
  'bindable-namespaces': {
    env: 'DRAWBRIDGE_BINDABLE_NAMESPACES',
    fallback: undefined,
    value: 'NAMES',
    help: 'binding: namespaces that providers may have made here; default: any',
  },
  'dry-run': {
    env: 'DRAWBRIDGE_DRY_RUN',
    fallback: 'false',
    value: 'true|false',
    help: 'binding: write nothing, log what would be written; takes no lease',
  },
  'callback-url': {
    env: 'DRAWBRIDGE_CALLBACK_URL',
    fallback: undefined,
    value: 'URL',
    help: 'inventory: where components report; default: https://drawbridge-callbacks.NAMESPACE.svc',
  },
  'callback-port': {
    env: 'DRAWBRIDGE_CALLBACK_PORT',
    fallback: '9444',
    value: 'PORT',
    help: 'inventory: the listener behind it; 0 takes a free one',
  },
  'component-api-url': {
    env: 'DRAWBRIDGE_COMPONENT_API_URL',
    fallback: undefined,
    value: 'URL',
    help: 'inventory: the API server as components reach it; default: as this process does',
  },
  'allow-loopback-http': {
    env: 'DRAWBRIDGE_ALLOW_LOOPBACK_HTTP',
    fallback: 'false',
    value: 'true|false',
    help: 'inventory: no TLS on loopback addresses, for trying out',
  },
  'max-grants-per-user': {
    env: 'DRAWBRIDGE_MAX_GRANTS_PER_USER',
    fallback: '0',
    value: 'NUMBER',
    help: 'grants that one user may have open at once; 0 is no limit',
  },
  'max-grants-per-namespace': {
    env: 'DRAWBRIDGE_MAX_GRANTS_PER_NAMESPACE',
    fallback: '0',
    value: 'NUMBER',
    help: 'the same for one namespace',
  },
  grantable: {
    env: 'DRAWBRIDGE_GRANTABLE',
    fallback: undefined,
    value: 'FILE',
    help: 'what templates may hand out besides exec: a JSON list of PolicyRules; default: nothing',
  },
  'trust-existing-templates': {
    env: 'DRAWBRIDGE_TRUST_EXISTING_TEMPLATES',
    fallback: 'false',
    value: 'true|false',
    help: 'grant through templates that name no author, too',
  },
  identity: {
    env: 'DRAWBRIDGE_IDENTITY',
    fallback: undefined,
    value: 'NAME',
    help: 'name of this replica; default: $HOSTNAME and the process id; with binding: $POD_NAME',
  },
  'break-glass-group': {
    env: 'DRAWBRIDGE_BREAK_GLASS_GROUP',
    fallback: undefined,
    value: 'GROUP',
    help: 'may enter access pods of others, with a Warning Event; default: nobody may',
  },
  'log-level': {
    env: 'DRAWBRIDGE_LOG_LEVEL',
    fallback: 'info',
    value: 'error|warn|info|debug',
    help: 'operational log, on standard error',
  },
  'log-format': { env: 'DRAWBRIDGE_LOG_FORMAT', fallback: 'json', value: 'json|text', help: 'its form' },
  'logging-format': { fallback: undefined, value: 'json|text', help: 'the same, as konnectors of kube-bind call it' },
  v: { fallback: undefined, value: 'NUMBER', help: 'their log level; from 4 it means debug' },
  timeout: {
    env: 'DRAWBRIDGE_TIMEOUT',
    fallback: '4m',
    value: 'DURATION',
    help: 'revoke-all gives up after this long',
  },
} as const satisfies Record<string, Flag>;

export type FlagName = keyof typeof flags;

/** The text of `drawbridge --help`. */
export function usage(): string {
  const rows = Object.entries(flags).map(([name, flag]: [string, Flag]) => {
    const head = `  --${name} ${flag.value}`;
    const fallback = flag.fallback === undefined ? '' : ` (default ${flag.fallback})`;
    const env = flag.env === undefined ? '' : ` [$${flag.env}]`;
    return `${head.padEnd(40)}${flag.help}${fallback}${env}`;
  });
  return [
    'Usage: drawbridge serve [flags]',
    '       drawbridge revoke-all [--kubeconfig=FILE] [--timeout=DURATION]',
    '       drawbridge audit verify [flags] FILE|- ...   checks audit journals; see drawbridge audit --help',
    '',
    'Opens access to Kubernetes workloads for a while and closes it on time, binds the APIs of other clusters, and runs the',
    'component reconcilers of an inventory of clusters.',
    'revoke-all deletes every request and waits until a running server has closed what they opened.',
    '',
    'Flags of serve (each may also come from the environment variable in brackets; the flag wins):',
    ...rows,
    '  --help, --version',
    '',
  ].join('\n');
}

/**
 * The flags that are given. `--leader-elect` and `--dry-run` alone mean true, and `-v=4` is `-v 4`, as Kubernetes' own programs take them.
 * @throws UsageError
 */
export function parseFlags(args: readonly string[]): Partial<Record<FlagName, string>> {
  const options = Object.fromEntries(
    Object.keys(flags).map((name) => [name, { type: 'string' as const, ...(name === 'v' ? { short: 'v' } : {}) }]),
  );
  const expanded = args.map((arg) =>
    arg === '--leader-elect' || arg === '--dry-run' ? `${arg}=true` : arg.replace(/^-v=?(?=\d)/, '--v='),
  );
  try {
    return parseArgs({ args: expanded, options, strict: true, allowPositionals: false }).values as Partial<
      Record<FlagName, string>
    >;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new UsageError(`${reason.replace(/\. To specify.*$/, '')}; see drawbridge --help`);
  }
}

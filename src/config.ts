import { parseArgs } from 'node:util';
import { parseGoDuration } from './kit/go-duration.ts';

/** Everything that can be set from outside, read once at start and frozen. */
export interface Config {
  /** One file by flag, or the search path of `$KUBECONFIG`; neither: in-cluster credentials, then `~/.kube/config`. */
  readonly kubeconfig: { readonly file?: string; readonly paths?: string };
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
  /** Port of `/healthz` and `/readyz` (HTTP). */
  readonly healthPort: number;
  /** Port of `/metrics` (HTTP). */
  readonly metricsPort: number;
  /** File that audit lines are appended to; `-` is standard output. */
  readonly auditLog: string;
  readonly leaderElect: boolean;
  /** Namespace of the leader lease, the Secrets that replicas share and the audit heads. */
  readonly leaseNamespace: string;
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

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';
export type LogFormat = 'json' | 'text';

/** A wrong flag or value: one line for the person who typed it; the process ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

interface Flag {
  readonly env: string;
  readonly fallback: string | undefined;
  readonly value: string;
  readonly help: string;
}

const flags = {
  kubeconfig: {
    env: 'KUBECONFIG',
    fallback: undefined,
    value: 'FILE',
    help: 'credentials of the cluster; default: in-cluster, then ~/.kube/config',
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
    help: '/healthz and /readyz (HTTP)',
  },
  'metrics-port': { env: 'DRAWBRIDGE_METRICS_PORT', fallback: '8080', value: 'PORT', help: '/metrics (HTTP)' },
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
    help: 'namespace of the lease, shared Secrets and audit heads',
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
    help: 'name of this replica; default: $HOSTNAME and the process id',
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
  timeout: {
    env: 'DRAWBRIDGE_TIMEOUT',
    fallback: '4m',
    value: 'DURATION',
    help: 'revoke-all gives up after this long',
  },
} as const satisfies Record<string, Flag>;

const defaultWebhookConfigurations = [
  'drawbridge-execaccessrequests',
  'drawbridge-execaccesstemplates',
  'drawbridge-podaccessrequests',
  'drawbridge-podaccesstemplates',
  'drawbridge-pods',
] as const;

type FlagName = keyof typeof flags;

/** The text of `drawbridge --help`. */
export function usage(): string {
  const rows = Object.entries(flags).map(([name, flag]: [string, Flag]) => {
    const head = `  --${name} ${flag.value}`;
    const fallback = flag.fallback === undefined ? '' : ` (default ${flag.fallback})`;
    return `${head.padEnd(40)}${flag.help}${fallback} [$${flag.env}]`;
  });
  return [
    'Usage: drawbridge serve [flags]',
    '       drawbridge revoke-all [--kubeconfig=FILE] [--timeout=DURATION]',
    '       drawbridge audit verify [flags] FILE|- ...   checks audit journals; see drawbridge audit --help',
    '',
    'Opens access to Kubernetes workloads for a while and closes it on time.',
    'revoke-all deletes every request and waits until a running server has closed what they opened.',
    '',
    'Flags of serve (each may also come from the environment variable in brackets; the flag wins):',
    ...rows,
    '  --help, --version',
    '',
  ].join('\n');
}

/**
 * Reads flags and environment.
 * @throws UsageError naming the flag, what was found and what is allowed.
 */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const given = parseFlags(args);
  const read = (name: FlagName): string | undefined => given[name] ?? env[flags[name].env] ?? flags[name].fallback;
  const text = (name: FlagName): string => {
    const value = read(name);
    if (value === undefined || value === '') throw new UsageError(`--${name} must not be empty`);
    return value;
  };
  const port = (name: FlagName): number => {
    const value = text(name);
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
  return Object.freeze({
    kubeconfig: readKubeconfig(given.kubeconfig, env[flags.kubeconfig.env]),
    port: port('port'),
    bindAddress: text('bind-address'),
    certFile: text('cert-file'),
    keyFile: text('key-file'),
    certificates: oneOf('certificates', ['files', 'own']),
    certificateSecret: text('certificate-secret'),
    certificateNames: names('certificate-names', [`drawbridge-webhook.${text('lease-namespace')}.svc`]),
    webhookConfigurations: names('webhook-configurations', defaultWebhookConfigurations),
    healthPort: port('health-port'),
    metricsPort: port('metrics-port'),
    auditLog: text('audit-log'),
    leaderElect: oneOf('leader-elect', ['true', 'false']) === 'true',
    leaseNamespace: text('lease-namespace'),
    maxGrantsPerUser: count('max-grants-per-user'),
    maxGrantsPerNamespace: count('max-grants-per-namespace'),
    grantable: read('grantable') || undefined,
    trustExistingTemplates: oneOf('trust-existing-templates', ['true', 'false']) === 'true',
    identity: read('identity') || `${env['HOSTNAME'] || 'drawbridge'}-${process.pid}`,
    breakGlassGroup: read('break-glass-group') || undefined,
    logLevel: oneOf('log-level', ['error', 'warn', 'info', 'debug']),
    logFormat: oneOf('log-format', ['json', 'text']),
    timeoutMs: duration('timeout'),
  });
}

/** The search path for kubeconfig files, as kubectl reads it. */
export const kubeconfigPaths = (): string | undefined => process.env['KUBECONFIG'];

/** The flag names one file, even with a colon in it; the variable is a list, as kubectl reads it. */
function readKubeconfig(file: string | undefined, paths: string | undefined): Config['kubeconfig'] {
  if (file === '') throw new UsageError('--kubeconfig must not be empty');
  if (file !== undefined) return { file };
  return paths ? { paths } : {};
}

/** `--leader-elect` alone means true, as Kubernetes' own programs take it. */
function parseFlags(args: readonly string[]): Partial<Record<FlagName, string>> {
  const options = Object.fromEntries(Object.keys(flags).map((name) => [name, { type: 'string' as const }]));
  const expanded = args.map((arg) => (arg === '--leader-elect' ? '--leader-elect=true' : arg));
  try {
    return parseArgs({ args: expanded, options, strict: true, allowPositionals: false }).values as Partial<
      Record<FlagName, string>
    >;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new UsageError(`${reason.replace(/\. To specify.*$/, '')}; see drawbridge --help`);
  }
}

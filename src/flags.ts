import { parseArgs } from 'node:util';
import { parseGoDuration } from './kit/go-duration.ts';

/** A wrong flag or value: one line for the person who typed it; the process ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** How the text of a flag becomes a value. */
interface FlagType<T> {
  /** What `--help` shows in the place of the value. */
  readonly placeholder: string;
  /** @throws UsageError naming the flag, what was found and what is allowed. */
  parse(text: string, flag: string): T;
}

const text = (placeholder: string): FlagType<string> => ({
  placeholder,
  parse: (value, flag) => {
    if (value === '') throw new UsageError(`--${flag} must not be empty`);
    return value;
  },
});

/** An empty text counts as absent. */
const optional = <T>({ placeholder, parse }: FlagType<T>): FlagType<T | undefined> => ({
  placeholder,
  parse: (value, flag) => (value === '' ? undefined : parse(value, flag)),
});

/** For texts that match `pattern` and that `from` knows a value for; `allowed` says in words which those are. */
const matching = <T>(
  placeholder: string,
  pattern: RegExp,
  allowed: string,
  from: (value: string) => T | undefined,
): FlagType<T> => ({
  placeholder,
  parse: (value, flag) => {
    const parsed = pattern.test(text(placeholder).parse(value, flag)) ? from(value) : undefined;
    if (parsed === undefined) throw new UsageError(`--${flag} is "${value}"; it must be ${allowed}`);
    return parsed;
  },
});

const port = matching('PORT', /^\d{1,5}$/, 'a port number from 0 to 65535', (value) =>
  Number(value) > 65535 ? undefined : Number(value),
);

const count = matching('NUMBER', /^\d{1,6}$/, 'a number from 0 to 999999, where 0 is no limit', Number);

const oneOf = <T extends string>(...allowed: readonly T[]) =>
  matching(allowed.join('|'), /^/, `one of ${allowed.join(', ')}`, (value) => allowed.find((one) => one === value));

const trueOrFalse: FlagType<boolean> = {
  placeholder: 'true|false',
  parse: (value, flag) => oneOf('true', 'false').parse(value, flag) === 'true',
};

/** Milliseconds. */
const duration = (leastMs = 0): FlagType<number> => ({
  placeholder: 'DURATION',
  parse: (value, flag) => {
    const parsed = parseGoDuration(text('').parse(value, flag));
    if ('error' in parsed) throw new UsageError(`--${flag}: ${parsed.error}`);
    const ms = Number(parsed.ns / 1_000_000n);
    if (ms >= leastMs) return ms;
    throw new UsageError(`--${flag} is too short; it must be at least ${leastMs / 1000} s`);
  },
});

const names: FlagType<readonly string[]> = {
  placeholder: 'NAMES',
  parse: (value, flag) => {
    const found = value.split(',');
    const wrong = found.find((one) => one.length > 253 || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(one));
    if (wrong === undefined) return Object.freeze(found);
    throw new UsageError(
      `--${flag} holds "${wrong}"; it must be names of small letters, digits, - and ., with commas between`,
    );
  },
};

const allFeatures = ['access', 'binding', 'inventory'] as const;

/** In the order above, each once. */
const features: FlagType<readonly (typeof allFeatures)[number][]> = {
  placeholder: 'NAMES',
  parse: (value, flag) => {
    const found = text('').parse(value, flag).split(',');
    if (found.every((name) => allFeatures.some((known) => known === name.trim()))) {
      return Object.freeze(allFeatures.filter((known) => found.some((name) => known === name.trim())));
    }
    throw new UsageError(
      `--${flag} is "${value}"; it must be ${allFeatures.join(' or ')}, or several with commas between`,
    );
  },
};

/** `host` is empty when only a port is given. */
const address: FlagType<{ readonly host: string; readonly port: number }> = {
  placeholder: 'ADDRESS',
  parse: (value, flag) => {
    const [, host = '', number] = /^(.*):(\d+)$/.exec(value) ?? [];
    if (number === undefined) throw new UsageError(`--${flag} is "${value}"; it must be [HOST]:PORT`);
    return { host: host.replace(/^\[(.*)\]$/, '$1'), port: port.parse(number, flag) };
  },
};

/** As klog takes it. */
const verbosity: FlagType<number> = {
  placeholder: 'NUMBER',
  parse: (value, flag) => {
    if (/^-?\d{1,9}$/.test(value)) return Number(value);
    throw new UsageError(`-${flag} is "${value}"; it must be a number`);
  },
};

interface Flag {
  readonly type: FlagType<unknown>;
  /** Environment variable. Default: DRAWBRIDGE_ and the name; false for flags of kube-bind's konnector that are merely tolerated. */
  readonly env?: string | false;
  readonly fallback?: string;
  readonly help: string;
}

/** What can be set from outside, in the order of `--help`. */
export const flags = {
  features: {
    type: features,
    fallback: 'access',
    help: 'halves that run: access, binding, inventory, or several by commas',
  },
  kubeconfig: {
    type: text('FILE'),
    env: 'KUBECONFIG',
    help: 'credentials of the cluster; default: in-cluster, then ~/.kube/config',
  },
  context: { type: optional(text('NAME')), help: 'context of the kubeconfig; default: the current one' },
  port: { type: port, fallback: '9443', help: 'admission webhooks (HTTPS); 0 takes a free one' },
  'bind-address': { type: text('ADDRESS'), fallback: '0.0.0.0', help: 'address of every port' },
  certificates: {
    type: oneOf('files', 'own'),
    fallback: 'files',
    help: 'serve the pair of the files below, or one that the server makes and renews',
  },
  'cert-file': {
    type: text('FILE'),
    fallback: '/etc/drawbridge/tls/tls.crt',
    help: 'serving certificate chain, PEM; reloaded when it changes',
  },
  'key-file': { type: text('FILE'), fallback: '/etc/drawbridge/tls/tls.key', help: 'its private key, PEM' },
  'client-ca-file': {
    type: optional(text('FILE')),
    help: 'PEM; callers of the webhooks must show a client certificate of it',
  },
  'certificate-secret': {
    type: text('NAME'),
    fallback: 'drawbridge-own-certificate',
    help: 'own: the Secret that holds it',
  },
  'certificate-names': {
    type: names,
    help: 'own: what it is for, by commas; default: the Services of the webhooks and callbacks',
  },
  'webhook-configurations': {
    type: names,
    help: 'own: whose caBundle it writes, by commas; default: those of webhooks/',
  },
  'health-port': { type: port, fallback: '8081', help: '/healthz and /readyz (HTTP); binding alone: 8090' },
  'metrics-port': { type: port, fallback: '8080', help: '/metrics (HTTP); binding alone: a free one' },
  'server-address': {
    type: optional(address),
    help: 'address and port of /healthz in one, as :8090; wins over --health-port',
  },
  'audit-log': { type: text('FILE|-'), fallback: '-', help: 'one JSON line a decision; - is standard output' },
  'leader-elect': {
    type: trueOrFalse,
    fallback: 'true',
    help: 'let one replica at a time write; false only for a single replica',
  },
  'lease-namespace': {
    type: text('NAME'),
    fallback: 'drawbridge-system',
    help: 'of leases and shared objects; binding alone: $POD_NAMESPACE',
  },
  'binding-lease-namespace': {
    type: optional(text('NAME')),
    help: 'binding: of its lease alone; default: --lease-namespace',
  },
  'lease-name': {
    type: text('NAME'),
    fallback: 'kube-bind',
    help: 'binding: its lease, which konnectors of kube-bind share',
  },
  'provider-polling-interval': {
    type: duration(1000),
    fallback: '15s',
    help: 'binding: how often exports are listed while unwatched',
  },
  bindable: {
    type: optional(names),
    help: 'binding: resource.group that providers may bind here, by commas; default: any',
  },
  'bindable-namespaces': {
    type: optional(names),
    help: 'binding: namespaces that providers may have made here; default: any',
  },
  'dry-run': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'binding: write nothing, log what would be written; takes no lease',
  },
  'callback-url': {
    type: optional(text('URL')),
    help: 'inventory: where components report; default: https://drawbridge-callbacks.NAMESPACE.svc',
  },
  'callback-port': { type: port, fallback: '9444', help: 'inventory: the listener behind it; 0 takes a free one' },
  'component-api-url': {
    type: optional(text('URL')),
    help: 'inventory: the API server as components reach it; default: as this process does',
  },
  'allow-loopback-http': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'inventory: no TLS on loopback addresses, for trying out',
  },
  'max-grants-per-user': {
    type: count,
    fallback: '0',
    help: 'grants that one user may have open at once; 0 is no limit',
  },
  'max-grants-per-namespace': { type: count, fallback: '0', help: 'the same for one namespace' },
  grantable: {
    type: optional(text('FILE')),
    help: 'what templates may hand out besides exec: a JSON list of PolicyRules; default: nothing',
  },
  'access-pods': {
    type: oneOf('confined', 'oz'),
    fallback: 'confined',
    help: 'confined by the NetworkPolicies of their workload, or as Oz makes them',
  },
  'trust-existing-templates': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'grant through templates that name no author, too',
  },
  'adopt-signing-keys': {
    type: trueOrFalse,
    fallback: 'false',
    help: 'use key Secrets that were there before the first start',
  },
  identity: {
    type: optional(text('NAME')),
    help: 'name of this replica; default: $HOSTNAME and the process id; with binding: $POD_NAME',
  },
  'break-glass-group': {
    type: optional(text('GROUP')),
    help: 'may enter access pods of others, with a Warning Event; default: nobody may',
  },
  'log-level': {
    type: oneOf('error', 'warn', 'info', 'debug'),
    fallback: 'info',
    help: 'operational log, on standard error',
  },
  'log-format': { type: oneOf('json', 'text'), fallback: 'json', help: 'its form' },
  'logging-format': { type: oneOf('json', 'text'), env: false, help: 'the same, as konnectors of kube-bind call it' },
  v: { type: verbosity, env: false, help: 'their log level; from 4 it means debug' },
  timeout: { type: duration(), fallback: '4m', help: 'revoke-all gives up after this long' },
} as const satisfies Record<string, Flag>;

export type FlagName = keyof typeof flags;
const flagNames = Object.keys(flags) as FlagName[];

/** What reading the flag comes to; undefined for those that have no default and were not given. */
export type FlagValue<Name extends FlagName> = (typeof flags)[Name] extends {
  readonly type: FlagType<infer T>;
  readonly fallback: string;
}
  ? T
  : (typeof flags)[Name] extends { readonly type: FlagType<infer T> }
    ? T | undefined
    : never;

/** The environment variable of a flag; undefined when it has none. */
function variableOf(name: FlagName): string | undefined {
  const { env = `DRAWBRIDGE_${name.toUpperCase().replaceAll('-', '_')}` }: Flag = flags[name];
  return env === false ? undefined : env;
}

/** The text of `drawbridge --help`. */
export function usage(): string {
  const rows = flagNames.map((name) => {
    const { type, fallback, help }: Flag = flags[name];
    const variable = variableOf(name);
    const head = `  --${name} ${type.placeholder}`.padEnd(40);
    return `${head}${help}${fallback === undefined ? '' : ` (default ${fallback})`}${variable ? ` [$${variable}]` : ''}`;
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

/** Flags and environment as they were given. */
export interface Flags {
  /** The value that was given, else the default. @throws UsageError */
  value<Name extends FlagName>(name: Name): FlagValue<Name>;
  /** The text that was given, by flag or environment; the flag wins. */
  given(name: FlagName): { readonly text: string; readonly by: 'flag' | 'environment' } | undefined;
}

/** @throws UsageError for flags that do not exist; wrong values are found when they are read. */
export function readFlags(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Flags {
  const typed = parseFlags(args);
  const given: Flags['given'] = (name) => {
    const flag = typed[name];
    if (flag !== undefined) return { text: flag, by: 'flag' };
    const variable = env[variableOf(name) ?? ''];
    return variable === undefined ? undefined : { text: variable, by: 'environment' };
  };
  return {
    given,
    value<Name extends FlagName>(name: Name) {
      const { type, fallback }: Flag = flags[name];
      const found = given(name)?.text ?? fallback;
      return (found === undefined ? undefined : type.parse(found, name)) as FlagValue<Name>;
    },
  };
}

/** `--leader-elect` and `--dry-run` alone mean true, and `-v=4` is `-v 4`, as Kubernetes' own programs take them. */
function parseFlags(args: readonly string[]): Partial<Record<FlagName, string>> {
  const options = Object.fromEntries(
    flagNames.map((name) => [name, { type: 'string' as const, ...(name === 'v' ? { short: 'v' } : {}) }]),
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

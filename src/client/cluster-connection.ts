import type { Resource } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import { quote } from '../kit/errors.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import { shellWord } from '../kit/shell-word.ts';
import type { TokenUser } from '../kube/client.ts';
import type { ConnectionAuth, Credentials } from '../kube/credentials.ts';
import { type AmbientOptions, ambientCredentials } from '../kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../kube/open-cluster.ts';
import { type Args, usageProblem } from './args.ts';

/** A cluster with the credentials of the user. All calls of a command share it. */
export interface ClusterConnection {
  readonly cluster: OpenCluster;
  /** Of `-n`, the context, or, in a Pod without a kubeconfig, its ServiceAccount; or `default`. */
  readonly namespace: string;
  /** For lists: the namespace, or none with `-A`. */
  readonly scope: { readonly namespace?: string };
  /** As the API server authenticates the credentials. Calls it once. */
  whoAmI(): Promise<TokenUser>;
  /** Prints one line to standard error, each text once. */
  note(text: string): void;
  /** `Warning` headers of the API server so far. */
  readonly warnings: readonly string[];
  /** 401 or 403 with which lists and watches were refused so far, for `follow`. */
  readonly watchRefusals: readonly number[];
  /** How far ahead the server's clock was at its last answer, ms; accurate to a second. */
  serverAheadMs(): number | undefined;
  /** How users call this program: `drawbridge` or `kubectl drawbridge`. */
  readonly program: string;
  /** Without a slash at the end. */
  readonly server: string;
  /** As the flags and KUBECONFIG select. */
  readonly kubeconfig: AmbientOptions;
  /** Of the kubeconfig, without `--as`. Connections that share them run an exec plugin once. */
  readonly credentials: Credentials;
  /** With these, kubectl connects in the same way. Without the namespace. */
  readonly kubectlFlags: readonly string[];
  /** Flags of commands in messages, quoted for a shell: these, and `-n NAMESPACE`. */
  readonly where: string;
  /** The same with `-A` for all namespaces. */
  readonly scopeWhere: string;
}

export interface ConnectionOptions {
  readonly args: Args;
  readonly clock: Clock;
  /** $KUBECONFIG. */
  readonly kubeconfigPaths: string | undefined;
  /** How users call this program. */
  readonly program: string;
  readonly note: (text: string) => void;
  /** Default: as `kubeconfig` selects. */
  readonly credentials?: Credentials | undefined;
}

/** `in namespace payments`, with `; try -A` if the user may list that, or `in any namespace`. */
export async function searchedText(
  { cluster, scope: { namespace } }: Pick<ClusterConnection, 'cluster' | 'scope'>,
  resources: readonly Resource[],
): Promise<string> {
  if (namespace === undefined) return 'in any namespace';
  // If a call fails, only the advice is missing.
  const mayAll = await mayListAll(cluster, resources).catch(() => false);
  return `in namespace ${namespace}${mayAll ? '; try -A' : ''}`;
}

/** Whether the user may list all of these kinds in all namespaces. */
export async function mayListAll({ own }: OpenCluster, resources: readonly Resource[]): Promise<boolean> {
  const questions = resources.map(({ group, plural }) => own.isAllowed({ verb: 'list', group, resource: plural }));
  return (await Promise.all(questions)).every((allowed) => allowed);
}

/** The clock of the API server, epoch ms, as of its last answer. */
export const serverNow = ({ serverAheadMs }: Pick<ClusterConnection, 'serverAheadMs'>, clock: Clock): number =>
  clock.now() + (serverAheadMs() ?? 0);

/** The same connection, for another namespace. */
export function inNamespace(connection: ClusterConnection, namespace: string): ClusterConnection {
  const where = whereOf(['-n', namespace], connection.kubectlFlags);
  return { ...connection, namespace, scope: { namespace }, where, scopeWhere: where };
}

const whereOf = (scope: readonly string[], kubectlFlags: readonly string[]): string =>
  [...scope, ...kubectlFlags].map(shellWord).join(' ');

/** That `kubectlFlags` and `where` have. */
export const connectionFlags: readonly string[] = ['kubeconfig', 'context', 'as', 'as-group', 'as-uid'];

/** Makes no call yet. Rejects as `ambientCredentials` does, and with a Problem for wrong flags. */
export async function openConnection({
  args,
  clock,
  kubeconfigPaths: paths,
  program,
  note,
  credentials: given,
}: ConnectionOptions): Promise<ClusterConnection> {
  const [file, context] = [args.text('kubeconfig'), args.text('context')];
  const kubeconfig = {
    ...(file === undefined ? {} : { file }),
    ...(context === undefined ? {} : { context }),
    ...(paths === undefined ? {} : { paths }),
  };
  const credentials = given ?? (await ambientCredentials(kubeconfig));
  const warnings: string[] = [];
  const watchRefusals: number[] = [];
  let aheadMs: number | undefined;
  const timeoutMs = timeoutOf(args);
  const options = {
    clock,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    onWarning: (text: string) => void warnings.push(text),
    watches: {
      onRefusal: (_: unknown, code: number): void => {
        if (code === 401 || code === 403) watchRefusals.push(code);
      },
    },
    onServerTime: (serverMs: number) => {
      aheadMs = serverMs - clock.now();
    },
  };
  const cluster = openCluster(impersonating(credentials, args), options);
  const kubectlFlags = connectionFlags.flatMap((flag) => args.texts(flag).map((value) => `--${flag}=${value}`));
  const namespace = args.text('namespace') ?? credentials.namespace ?? 'default';
  if (namespace === '') throw usageProblem('--namespace must not be empty');
  const isAll = args.has('all-namespaces');
  let user: Promise<TokenUser> | undefined;
  const noted = new Set<string>();
  return {
    cluster,
    namespace,
    scope: isAll ? {} : { namespace },
    whoAmI: () => {
      user ??= cluster.own.whoAmI();
      return user;
    },
    note: (text) => {
      if (!noted.has(text)) note(text);
      noted.add(text);
    },
    warnings,
    watchRefusals,
    serverAheadMs: () => aheadMs,
    program,
    server: credentials.server,
    kubeconfig,
    credentials,
    kubectlFlags,
    where: whereOf(['-n', namespace], kubectlFlags),
    scopeWhere: whereOf(isAll ? ['-A'] : ['-n', namespace], kubectlFlags),
  };
}

/** Of a timer of Node: 24 days. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Milliseconds. As for kubectl, a bare number is seconds, and 0 is no limit. @throws Problem */
function timeoutOf(args: Args): number | undefined {
  const text = args.text('request-timeout');
  if (text === undefined) return undefined;
  const parsed = parseGoDuration(/^\d+$/.test(text) ? `${text}s` : text);
  if ('error' in parsed) throw usageProblem(`--request-timeout: ${parsed.error}`);
  if (parsed.ns < 0n) throw usageProblem(`--request-timeout is ${quote(text)}; it must not be negative`);
  return parsed.ns === 0n ? MAX_TIMEOUT_MS : Math.min(MAX_TIMEOUT_MS, Math.max(1, toMilliseconds(parsed.ns)));
}

/** Adds impersonation. @throws Problem if `--as` is empty, or missing with its other flags. */
function impersonating(credentials: Credentials, args: Args): Credentials {
  const [user, uid, groups] = [args.text('as'), args.text('as-uid'), args.texts('as-group')];
  if (user === undefined) {
    if (uid !== undefined || groups.length > 0) throw usageProblem('--as-group and --as-uid need --as');
    return credentials;
  }
  if (user === '') throw usageProblem('--as must not be empty');
  const headers = {
    'impersonate-user': user,
    ...(uid === undefined ? {} : { 'impersonate-uid': uid }),
    ...(groups.length === 0 ? {} : { 'impersonate-group': [...groups] }),
  };
  const connectionAuth = async (): Promise<ConnectionAuth> => {
    const auth = await credentials.connectionAuth();
    return { ...auth, headers: { ...auth.headers, ...headers } };
  };
  return { ...credentials, connectionAuth };
}

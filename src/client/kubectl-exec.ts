import { childNameOf } from '../api/access/names.ts';
import { grantProxyPath } from '../api/gateway/names.ts';
import type { KubeObject } from '../api/object.ts';
import { describe } from '../kit/errors.ts';
import { shellWord } from '../kit/shell-word.ts';
import { findObject } from '../kube/client.ts';
import { nameIn, requesterOf, requestResource, requestWithFlags, typeOf } from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import type { Context } from './command.ts';
import { exits } from './command-spec.ts';
import { follow } from './follow.ts';
import { Problem } from './problem.ts';
import { cannotOpen, specOf, stateOf, statusOf } from './request-state.ts';
import { useText } from './use-text.ts';
import { endedProblem } from './wait.ts';

/** For `--server` of kubectl; undefined if the grant does not need the gateway. */
export function gatewayUrl(request: KubeObject, { server }: Pick<ClusterConnection, 'server'>): string | undefined {
  const { namespace = '', name, uid = '' } = request.metadata;
  if (statusOf(request).grant?.session?.via !== 'Gateway') return undefined;
  return `${server}${grantProxyPath(namespace, childNameOf({ name, uid }))}`;
}

/**
 * Runs a command, by default `/bin/sh`, with the user's kubectl in the pod of a request, if
 * required through the gateway. Rejects with a Problem if kubectl cannot start, or there is no pod
 * yet.
 */
export async function kubectlExec(
  context: Context,
  connection: ClusterConnection,
  request: KubeObject,
  command: readonly string[],
): Promise<number> {
  const { io, args } = context;
  const container = args.text('container');
  const { pod } = stateOf(request);
  const server = gatewayUrl(request, connection);
  if (pod === '') {
    const target = requestWithFlags(connection, typeOf(request), request.metadata.name);
    throw new Problem(
      exits.failed,
      `the status of ${request.metadata.name} names no pod yet; to try again: ${io.program} exec ${target}`,
    );
  }
  const kubectlArgs = [
    'exec',
    '-i',
    ...(io.terminal.input && io.terminal.output ? ['-t'] : []),
    `--namespace=${request.metadata.namespace ?? connection.namespace}`,
    ...connection.kubectlFlags,
    ...(server === undefined ? [] : [`--server=${server}`]),
    ...(container === undefined ? [] : [`--container=${container}`]),
    // The name comes from the object; the prefix keeps kubectl from parsing it as a flag.
    `pod/${pod}`,
    '--',
    ...(command.length === 0 ? ['/bin/sh'] : command),
  ];
  const code = await io.run('kubectl', kubectlArgs).catch((error: unknown) => {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const remedy = isMissing ? 'install it, or run on another machine' : 'correct this, or run on another machine';
    throw new Problem(
      exits.failed,
      `cannot run kubectl: ${describe(error)}; ${remedy}: kubectl ${kubectlArgs.map(shellWord).join(' ')}`,
    );
  });
  if (code === killed) await untilOver(context, connection, request);
  // If the end of access closed the shell, kubectl does not print why.
  const ended = await endText(connection, request);
  // Only a failure, because a user may have other permissions; and no end by a signal, which the
  // grant does not cause.
  const note = ended || (code === exits.done || code > signalExitBase ? '' : await noExecText(connection, request));
  if (note !== '') io.printError(`note: ${note}\n`);
  return code;
}

/** That access has ended or ends; empty if it is open, or the request cannot be read. */
async function endText(connection: ClusterConnection, request: KubeObject): Promise<string> {
  const resource = requestResource(typeOf(request));
  const now = await findObject(connection.cluster.client, resource, nameIn(request), {}).catch(() => request);
  const { name, uid } = request.metadata;
  if (now?.metadata.uid !== uid) return `${name} has ended: the request was deleted`;
  return now && cannotOpen(stateOf(now).state) ? endedProblem(now).message : '';
}

/** Plus the number of the signal that ended a program: its exit code. */
const signalExitBase = 128;
/** The command was killed, perhaps together with its Pod. */
const killed = signalExitBase + 9;
/** In this time the server sees that a Pod has died, and ends its access. */
const deathMs = 3_000;

/** Resolves when the request is over, after `deathMs`, or if the watch fails. */
async function untilOver(
  { clock, signal }: Context,
  connection: ClusterConnection,
  request: KubeObject,
): Promise<void> {
  const startedMs = clock.monotonic();
  const isOver = (now: KubeObject | undefined): boolean => !now || cannotOpen(stateOf(now).state);
  await follow(connection, [{ resource: requestResource(typeOf(request)), name: nameIn(request) }], {
    clock,
    signal,
    onChange: (now) => isOver(now) || undefined,
    tick: () => {
      if (clock.monotonic() - startedMs >= deathMs) throw new Error('not over in time');
    },
    toContinue: '',
  }).catch(() => undefined);
}

/** Why the grant permits this user no exec, and what to run instead, if that is known. */
async function noExecText(connection: ClusterConnection, request: KubeObject): Promise<string> {
  const { grant } = statusOf(request);
  const user = await connection.whoAmI().catch(() => undefined);
  if (!grant || !user) return '';
  const { name } = request.metadata;
  const { subjects = [] } = grant;
  const isGrantedToUser = subjects.some((subject) =>
    subject.kind === 'User' ? subject.name === user.username : user.groups.includes(subject.name),
  );
  if (!isGrantedToUser) {
    const template = `${specOf(request).templateName} ${connection.where}`;
    return `${name} was opened for ${requesterOf(request) || 'another user'}, not for ${user.username}; for access of your own: ${connection.program} request ${typeOf(request)} ${template}`;
  }
  // The rules of a grant through the gateway do not name pods/exec.
  if (grant.session?.via === 'Gateway') return '';
  const permitsExec = grant.rules.some(({ resources }) => resources.includes('pods/exec'));
  if (permitsExec) return '';
  const command = useText(request, connection);
  const target = requestWithFlags(connection, typeOf(request), name);
  return `${name} permits no exec; ${command === '' ? `to see what it permits: ${connection.program} get ${target} -o yaml` : `use it with: ${command}`}`;
}

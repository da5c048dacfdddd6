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
import { isFinal, specOf, stateOf, statusOf } from './request-state.ts';
import { useText } from './use-text.ts';

/** The value of `--server` with which kubectl calls the gateway; undefined if the grant of the request does not need the gateway. */
export function gatewayUrl(request: KubeObject, { server }: Pick<ClusterConnection, 'server'>): string | undefined {
  const { namespace = '', name, uid = '' } = request.metadata;
  if (statusOf(request).grant?.session?.via !== 'Gateway') return undefined;
  return `${server}${grantProxyPath(namespace, childNameOf({ name, uid }))}`;
}

/**
 * Runs a command in the pod of a request with the kubectl of the user and the same connection flags, and through the gateway if the grant
 * requires it. If `command` is empty, runs `/bin/sh`. Resolves to the exit code of kubectl, which is that of the command if the command
 * ran. Rejects with a Problem if kubectl cannot start, or if the request names no pod yet.
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
    // The prefix keeps kubectl from parsing the name, which comes from the object, as a flag.
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
  // Explain only a failure, because a user may have permissions besides those of the grant. If a signal ended kubectl or the command, the
  // grant is not the cause.
  const note = ended || (code === exits.done || code > signalExitBase ? '' : await noExecText(connection, request));
  if (note !== '') io.printError(`note: ${note}\n`);
  return code;
}

/** That access has ended or ends, and why if the request still exists; empty if it is open, or if the client cannot read the request now. */
async function endText(connection: ClusterConnection, request: KubeObject): Promise<string> {
  const resource = requestResource(typeOf(request));
  const now = await findObject(connection.cluster.client, resource, nameIn(request), {}).catch(() => request);
  const { name, uid } = request.metadata;
  if (now?.metadata.uid !== uid) return `the access of ${name} has ended`;
  const { state, why } = stateOf(now ?? request);
  if (state === 'Ending') return `the access of ${name} ends: ${why}; the server has not closed it yet`;
  return isFinal(state) ? `the access of ${name} has ended: ${why}` : '';
}

/** If a signal ends a program, its exit code is this number plus the number of the signal. */
const signalExitBase = 128;
/** The exit code of a command that was killed, perhaps together with its Pod. */
const killed = signalExitBase + 9;
/** How long the server may take to see that a Pod has died, and to end its access, milliseconds. */
const deathMs = 3_000;

/** Resolves when the request is over, after `deathMs`, or if the client cannot watch it. */
async function untilOver(
  { clock, signal }: Context,
  connection: ClusterConnection,
  request: KubeObject,
): Promise<void> {
  const startedMs = clock.monotonic();
  const isOver = (now: KubeObject | undefined): boolean => {
    const state = now && stateOf(now).state;
    return state === undefined || state === 'Ending' || isFinal(state);
  };
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

/** Why the grant does not permit exec to this user, and what to run instead; empty if it permits exec, or if that is unknown. */
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
    const template = [specOf(request).templateName ?? '', '-n', connection.namespace, ...connection.quotedFlags];
    return `${name} was opened for ${requesterOf(request) || 'another user'}, not for ${user.username}; for access of your own: ${connection.program} request ${typeOf(request)} ${template.join(' ')}`;
  }
  // The rules of a grant through the gateway do not name pods/exec, even if the gateway permits it.
  if (grant.session?.via === 'Gateway') return '';
  const permitsExec = grant.rules.some(({ resources }) => resources.includes('pods/exec'));
  if (permitsExec) return '';
  const command = useText(request);
  const target = requestWithFlags(connection, typeOf(request), name);
  return `${name} permits no exec; ${command === '' ? `to see what it permits: ${connection.program} get ${target} -o yaml` : `use it with: ${command}`}`;
}

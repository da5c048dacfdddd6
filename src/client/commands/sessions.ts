import { createReadStream } from 'node:fs';
import { access } from 'node:fs/promises';
import { type AccessSession, accessSessions } from '../../api/access/access-session.ts';
import { sessionLogPath } from '../../api/gateway/names.ts';
import { isRecordingName } from '../../audit/verify/recordings.ts';
import { parseTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { printable } from '../../kit/printable.ts';
import { findObject } from '../../kube/client.ts';
import { ApiError, isForbidden, isNotFound, TransportError } from '../../kube/errors.ts';
import { usageProblem } from '../args.ts';
import { type ClusterConnection, searchedText } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { type ArgumentSpec, exits } from '../command-spec.ts';
import { type Column, outputForm, type Presentation, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { type PlayOptions, play } from '../player.ts';
import { Problem, plainMessage } from '../problem.ts';
import { span } from '../times.ts';

const outputWarning =
  'On a terminal, drops control sequences that could make the terminal send input or write outside its screen: the output is the text of another person. With -o json, prints the lines of asciicast.';

const nameArgument: ArgumentSpec = { name: 'SESSION', complete: 'sessions' };

export const sessionsList: Command = {
  name: 'sessions list',
  summary: 'List the open sessions through the gateway',
  details:
    'Lists the sessions in one namespace, or with -A in all. RECORD is what the template asks for; the journal shows a lost recording. Needs the ClusterRole drawbridge-session-auditor.',
  examples: ['sessions list', 'sessions list -A -o json'],
  async run(context) {
    const { args, io, clock } = context;
    const form = outputForm(args);
    const connection = await context.connect();
    const printer = new Printer(
      io,
      form,
      sessionTable(args.has('all-namespaces'), () => clock.now()),
    );
    const count = await printPages(connection, [accessSessions], printer, () => true).catch(throwProblem);
    if (count === 0) io.printError(`no open sessions found ${await searchedText(connection, [accessSessions])}\n`);
    return exits.done;
  },
};

export const sessionsKill: Command = {
  name: 'sessions kill',
  summary: 'End an open session',
  details:
    'The user of exec or attach sees that the session was killed; a port-forward just closes. The grant stays open, so the user can open another session; revoke ends the grant. Needs the ClusterRole drawbridge-session-auditor.',
  args: [nameArgument],
  examples: ['sessions kill 0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10'],
  async run(context) {
    const [name = ''] = context.args.positionals;
    checkName(name);
    const { io } = context;
    const { cluster, namespace } = await context.connect();
    const found = await findObject(cluster.client, accessSessions, { namespace, name }, {}).catch(throwProblem);
    const { uid } = found?.metadata ?? {};
    const deletion =
      found && uid !== undefined
        ? await cluster.client.delete(accessSessions, { namespace, name }, { uid }).catch(throwProblem)
        : 'absent';
    if (!found || deletion === 'absent') {
      io.printError(`session ${name} is not open in namespace ${namespace}; nothing to end\n`);
      return exits.done;
    }
    const { user, pod, stream, request } = (found as AccessSession).spec;
    io.print(
      `ended: ${stream} of ${printable(user)} in pod ${pod}; the access of request ${request.name} stays open\n`,
    );
    return exits.done;
  },
};

export const sessionsTail: Command = {
  name: 'sessions tail',
  summary: 'Watch an open session, from now until its end',
  details: `Shows the output that the user of the session sees, until the session ends. ${outputWarning} Needs the ClusterRole drawbridge-session-auditor. Each view is a line in the audit journal.`,
  args: [nameArgument],
  examples: [
    'sessions tail 0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10',
    'sessions tail 0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10 -o json',
  ],
  async run(context) {
    const [name = ''] = context.args.positionals;
    checkName(name);
    const connection = await context.connect();
    const chunks = await openLog(connection, 'sessions', name, context.signal);
    try {
      await play(chunks, { ...playOptions(context), speed: undefined });
    } catch (error) {
      throw lostView(error, connection, name);
    }
    return exits.done;
  },
};

export const sessionsPlay: Command = {
  name: 'sessions play',
  summary: 'Replay the recording of a session, or a file in asciicast v2 or v3',
  details: `Pauses of more than two seconds become two seconds. Without a terminal, prints everything at once. ${outputWarning} For SESSION, it needs the ClusterRole drawbridge-session-auditor; each call is a line in the audit journal.`,
  args: [{ name: 'SESSION|FILE', complete: 'files' }],
  flags: [
    {
      name: 'speed',
      value: 'NUMBER',
      help: 'Playback speed, from 0.01 to 1000; 2 is twice as fast as the session. Default: 1.',
    },
  ],
  examples: ['sessions play 0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10 --speed 4', 'sessions play session.cast'],
  async run(context) {
    const [name = ''] = context.args.positionals;
    const { io } = context;
    const speed = speedOf(context);
    const options = playOptions(context);
    const timed = { ...options, speed: io.terminal.output && !options.asLines ? speed : undefined };
    if (isSessionName(name)) {
      const connection = await context.connect();
      await play(await openLog(connection, 'recordings', name, context.signal), timed);
      return exits.done;
    }
    if (!(await exists(name)))
      throw usageProblem(
        `there is no file ${quote(name)}, and it is not the name of a session, a UUID that sessions list and the journal print`,
      );
    await play(createReadStream(name, { signal: context.signal }), timed);
    return exits.done;
  },
};

function sessionTable(withNamespace: boolean, now: () => number): Presentation<AccessSession> {
  const columns: readonly (Column<AccessSession> | false)[] = [
    withNamespace && { title: 'NAMESPACE', text: ({ metadata }) => metadata.namespace ?? '' },
    { title: 'USER', text: ({ spec }) => spec.user },
    { title: 'POD', text: ({ spec }) => spec.pod },
    { title: 'CONTAINER', wide: true, text: ({ spec }) => spec.container ?? '' },
    { title: 'STREAM', text: streamText },
    { title: 'SINCE', text: ({ spec }) => span(now() - (parseTime(spec.startedAt) ?? now())) },
    // Not the last column, because a long last column is wrapped.
    { title: 'SESSION', long: true, text: ({ metadata }) => metadata.name },
    { title: 'RECORD', text: ({ spec }) => spec.recording },
    { title: 'REQUEST', wide: true, text: ({ spec }) => spec.request.name },
    { title: 'REPLICA', wide: true, text: ({ spec }) => spec.replica },
  ];
  return {
    columns: columns.filter((one) => one !== false),
    object: (object) => object,
    name: ({ metadata }) => metadata.name,
    blocks: true,
  };
}

/** `exec -t` with a terminal. */
export const streamText = ({ spec }: AccessSession): string => (spec.tty ? `${spec.stream} -t` : spec.stream);

/** Passes any valid namespace, because `openLog` checks the real one. */
const isSessionName = (name: string): boolean => isRecordingName('default', name);

/** @throws Problem */
export function checkName(name: string): void {
  if (!isSessionName(name))
    throw usageProblem(
      `SESSION is ${quote(name)}; it must be the name of a session, a UUID in lower case that sessions list prints`,
    );
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

function speedOf({ args }: Context): number {
  const text = args.text('speed') ?? '1';
  const speed = Number(text);
  if (/^[\d.]+$/.test(text) && speed >= 0.01 && speed <= 1000) return speed;
  throw usageProblem(`--speed is ${quote(text)}; it must be a number from 0.01 to 1000, such as 2`);
}

function playOptions({ args, io, clock, signal }: Context): Omit<PlayOptions, 'speed'> {
  const form = outputForm(args);
  if (form !== 'table' && form !== 'json')
    throw usageProblem(`--output is ${form}; for a session, it must be table or json`);
  return { io, clock, signal, asLines: form === 'json' };
}

/** Of a live view that broke off; other errors stay. */
export function lostView(error: unknown, { program, where }: ClusterConnection, name: string): unknown {
  if (!(error instanceof TransportError)) return error;
  return new Problem(
    exits.failed,
    `lost the view: ${error.why}; the session may still be open; watch it again: ${program} sessions tail ${name} ${where}`,
  );
}

/** The live view of a session, or its recording, as asciicast. */
export async function openLog(
  connection: ClusterConnection,
  resource: 'sessions' | 'recordings',
  name: string,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { namespace } = connection;
  if (!isRecordingName(namespace, name))
    throw usageProblem(`--namespace is ${quote(namespace)}; it must be the name of a namespace`);
  return connection.cluster.own.stream(sessionLogPath(resource, namespace, name), signal).catch(throwProblem);
}

function throwProblem(error: unknown): never {
  throw sessionProblem(error);
}

/** For a denial, an answer of the gateway, or a cluster without it; other errors stay. */
function sessionProblem(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  if (isForbidden(error)) return new Problem(exits.denied, `denied: ${plainMessage(error)}; ${askForRole}`);
  const [byGateway] = error.causes;
  if (byGateway) return new Problem(isNotFound(error) ? exits.ended : exits.failed, byGateway.message);
  if (!isNotFound(error)) return error;
  return new Problem(
    exits.failed,
    'this cluster has no gateway of drawbridge; ask an administrator to enable it, or choose another --context',
  );
}

const askForRole = 'ask an administrator to bind the ClusterRole drawbridge-session-auditor of the chart to you';

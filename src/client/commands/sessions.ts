import { createReadStream } from 'node:fs';
import { access } from 'node:fs/promises';
import { sessionLogPath } from '../../api/gateway/names.ts';
import { isRecordingName } from '../../audit/verify/recordings.ts';
import { quote } from '../../kit/errors.ts';
import { ApiError, isForbidden, isNotFound, TransportError } from '../../kube/errors.ts';
import { usage } from '../args.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { outputForm } from '../output.ts';
import { type PlayOptions, play } from '../player.ts';
import { Problem, plainMessage } from '../problem.ts';
import type { Session } from '../session.ts';

const hostile =
  'The output of a session is the text of another person. On a terminal, the command shows only what can neither make the terminal answer nor write outside its screen. With -o json, it prints the lines of asciicast as they are.';

export const sessionsTail: Command = {
  name: 'sessions tail',
  summary: 'Watch an open session, from now until its end',
  details: `Shows what the user of the session sees, and ends with the session. ${hostile} Needs the ClusterRole drawbridge-session-auditor. Each view is a line in the audit journal.`,
  args: [{ name: 'SESSION' }],
  examples: [
    'sessions tail 0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10',
    'sessions tail 0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10 -o json',
  ],
  async run(context) {
    const [name = ''] = context.args.positionals;
    checkName(name);
    const session = await context.connect();
    const chunks = await openLog(session, 'sessions', name, context.signal);
    try {
      await play(chunks, { ...playOptions(context), speed: undefined });
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      const again = `${session.program} sessions tail ${name} -n ${session.namespace}`;
      throw new Problem(
        exits.failed,
        `lost the view: ${error.why}; the session may still be open; watch it again: ${again}`,
      );
    }
    return exits.done;
  },
};

export const sessionsPlay: Command = {
  name: 'sessions play',
  summary: 'Replay the recording of a session, or a file in asciicast v2 or v3',
  details: `Pauses of more than two seconds become two seconds. Without a terminal, prints everything at once. ${hostile} For SESSION, it needs the ClusterRole drawbridge-session-auditor; each call is a line in the audit journal.`,
  args: [{ name: 'SESSION|FILE', complete: 'files' }],
  flags: [{ name: 'speed', value: 'NUMBER', help: 'How often as fast as the session, such as 2 or 0.5. Default: 1.' }],
  examples: ['sessions play 0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10 --speed 4', 'sessions play session.cast'],
  async run(context) {
    const [name = ''] = context.args.positionals;
    const { io } = context;
    const speed = speedOf(context);
    const options = playOptions(context);
    const timed = { ...options, speed: io.terminal.output && !options.asLines ? speed : undefined };
    if (isSessionName(name)) {
      const session = await context.connect();
      await play(await openLog(session, 'recordings', name, context.signal), timed);
      return exits.done;
    }
    if (!(await exists(name)))
      throw usage(
        `there is no file ${quote(name)}, and it is no name of a session: a UUID, as the journal and sessions list print it`,
      );
    await play(createReadStream(name, { signal: context.signal }), timed);
    return exits.done;
  },
};

/** The namespace does not matter: it is checked with the call. */
const isSessionName = (name: string): boolean => isRecordingName('default', name);

/** @throws Problem if the argument is no name of a session. */
function checkName(name: string): void {
  if (!isSessionName(name))
    throw usage(`SESSION is ${quote(name)}; it must be a name as sessions list prints it: a UUID in lower case`);
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
  throw usage(`--speed is ${quote(text)}; it must be a number from 0.01 to 1000, such as 2`);
}

function playOptions({ args, io, clock, signal }: Context): Omit<PlayOptions, 'speed'> {
  const form = outputForm(args);
  if (form !== 'table' && form !== 'json') throw usage(`--output is ${form}; for recordings, it may be json`);
  return { io, clock, signal, asLines: form === 'json' };
}

async function openLog(
  session: Session,
  resource: 'sessions' | 'recordings',
  name: string,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { namespace } = session;
  if (!isRecordingName(namespace, name))
    throw usage(`--namespace is ${quote(namespace)}; it must be the name of a namespace`);
  try {
    return await session.cluster.own.stream(sessionLogPath(resource, namespace, name), signal);
  } catch (error) {
    throw explained(error);
  }
}

/** The refusal of a call to the gateway: by the API server, or by the gateway itself. */
function explained(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const message = plainMessage(error.message);
  if (isForbidden(error)) return new Problem(exits.denied, `denied: ${message}; ${askForRole}`);
  const [, byGateway] = /drawbridge: (.*)$/s.exec(message) ?? [];
  if (byGateway !== undefined) return new Problem(isNotFound(error) ? exits.ended : exits.failed, byGateway);
  if (!isNotFound(error)) return error;
  return new Problem(
    exits.failed,
    'this cluster has no gateway of drawbridge; an administrator enables it, or choose another --context',
  );
}

const askForRole = 'ask an administrator to bind the ClusterRole drawbridge-session-auditor to you';

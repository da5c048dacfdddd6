import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { parseGoDuration } from '../../kit/go-duration.ts';
import { shellWord } from '../../kit/shell-word.ts';
import { findObject } from '../../kube/client.ts';
import { ApiError, codeOf } from '../../kube/errors.ts';
import { accessOf, fullName, requestWithFlags, type TypeName, typeOf } from '../access-requests.ts';
import { permitsExec } from '../approver-text.ts';
import { type Args, usageProblem } from '../args.ts';
import { type ClusterConnection, connectionFlags } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits, type FlagSpec } from '../command-spec.ts';
import type { OutputForm } from '../common-flags.ts';
import { kubectlExec } from '../kubectl-exec.ts';
import { outputForm, printObject } from '../output.ts';
import { Problem, problemOf } from '../problem.ts';
import { isFinal, stateOf } from '../request-state.ts';
import { isAboutTemplate } from '../rule-lines.ts';
import { useText } from '../use-text.ts';
import { readTemplate } from '../voted-template.ts';
import { deleteText, nextCommands, openText, waitFor } from '../wait.ts';

/** `explain` accepts them, too. */
export const requestFlags: readonly FlagSpec[] = [
  { name: 'for', value: 'DURATION', help: 'How long access lasts, such as 30m. Default: the default of the template.' },
  { name: 'reason', value: 'TEXT', help: 'Why you need access. A template can require it.' },
  {
    name: 'at',
    value: 'TIME',
    help: 'When access starts: RFC 3339, or a duration from now such as 2h. Default: as soon as possible.',
  },
  {
    name: 'emergency',
    help: 'Request access without approvals, if you are in an emergency group of the template. Another person must review it afterwards.',
  },
];
export const podFlag: FlagSpec = {
  name: 'pod',
  value: 'NAME',
  help: 'The running pod. Default: the server chooses one.',
};

export const timeoutFlag: FlagSpec = {
  name: 'timeout',
  value: 'DURATION',
  help: 'Stop waiting after this time, with exit code 4. Default: no limit.',
};

const waitFlags: readonly FlagSpec[] = [
  {
    name: 'name',
    value: 'NAME',
    help: 'The name of the request. Default: the name of the template and a random suffix.',
  },
  { name: 'no-wait', help: 'Only create the request.' },
  timeoutFlag,
  { name: 'exec', help: 'Open a shell when access is open, or run COMMAND.' },
  {
    name: 'container',
    short: 'c',
    value: 'NAME',
    help: 'With --exec: the container. Default: the one that kubectl chooses.',
  },
];

const requestCommand = (type: TypeName, summary: string, own: readonly FlagSpec[]): Command => ({
  name: `request ${type}`,
  summary,
  details:
    'Creates a request and waits until access is open, or the request is denied or ends. Standard error shows what it waits for, and which approvals it needs. Standard output is the command that uses the access; with -o json or -o yaml, the request; with -o name, its name. If the command of the template does not fit the pod, standard error says why, standard output is another permitted command, if any, and the exit code is 0. Ctrl-C ends the wait and keeps the request; the client then prints how to wait again and to revoke it.',
  args: [{ name: 'TEMPLATE', complete: 'templates' }],
  rest: 'COMMAND',
  flags: [...requestFlags, ...own, ...waitFlags],
  examples: [
    `request ${type} payments-${type === 'pod' ? 'shell' : 'exec'} --for 30m --reason 'INC-42 disk full'`,
    `request ${type} payments-${type === 'pod' ? 'shell' : 'exec'} --exec -- ls /tmp`,
  ],
  run: (context) => runRequest(context, type),
});

export const requestPod = requestCommand('pod', 'Request a pod of your own, from a PodAccessTemplate', []);
export const requestExec = requestCommand('exec', 'Request a shell in a running pod', [podFlag]);

async function runRequest(context: Context, type: TypeName): Promise<number> {
  const { args, io, clock } = context;
  const form = outputForm(args);
  if (args.rest.length > 0 && !args.has('exec'))
    throw usageProblem('a command after -- needs --exec; add --exec, or omit the command');
  const timeoutMs = args.durationMs('timeout');
  const manifest = requestManifest(context, type);
  const connection = await context.connect();
  manifest.metadata.namespace = connection.namespace;
  const { resource } = accessOf(type).request;
  if (args.has('exec')) await requireExec(connection, type, args);
  const created = await connection.cluster.client.create(resource, manifest).catch(async (error: unknown) => {
    throw await createProblem(args, connection, type, error);
  });
  for (const warning of connection.warnings) io.printError(`note: ${forRequester(warning)}\n`);
  io.printError(`created ${fullName(created)}\n`);
  if (args.has('no-wait')) {
    io.printError(`${nextCommands(connection, type, created.metadata.name)}\n`);
    if (!printObject(io, form, created)) io.print(`${fullName(created)}\n`);
    return exits.done;
  }
  const ready = await waitFor(context, connection, { type, object: created }, { timeoutMs });
  if (args.has('exec')) {
    io.printError(`${openText(ready, clock.now())}\n`);
    return kubectlExec(context, connection, ready, args.rest);
  }
  printAccess(context, connection, form, ready);
  return exits.done;
}

/** Rejects with a Problem if the template permits no exec. The server checks unreadable ones. */
async function requireExec(connection: ClusterConnection, type: TypeName, args: Args): Promise<void> {
  const name = nameWithoutType(args.positionals[0] ?? '');
  const found = await readTemplate(connection, type, name);
  if (!found || permitsExec(found)) return;
  const words = [name, connection.where, ...args.without([...inWhere, 'exec', 'container'])];
  throw usageProblem(
    `template ${name} permits no exec; omit --exec, and the client prints a command for the open access. Run: ${connection.program} request ${type} ${words.join(' ')}`,
  );
}

/** The flags of `ClusterConnection.where`. */
const inWhere = [...connectionFlags, 'namespace'];

/** Without the type of `exec/NAME`. */
const nameWithoutType = (template: string): string => template.replace(/^.*\//, '');

/** Advice for the author of the template ends with whom to ask. */
const forRequester = (warning: string): string =>
  isAboutTemplate(warning) ? `${warning}. Ask the author of the template to correct it` : warning;

/** By the field that a denial names. */
const flagOf: Readonly<Record<string, string>> = {
  'spec.duration': '--for',
  'spec.reason': '--reason',
  'spec.startAt': '--at',
  'spec.emergency': '--emergency',
  'spec.targetPod': '--pod',
};

/** If another command helps, the message contains it. */
async function createProblem(
  args: Args,
  connection: ClusterConnection,
  type: TypeName,
  error: unknown,
): Promise<Problem> {
  const problem = problemOf(error);
  const { exitCode, message } = problem;
  const { cluster, namespace, program, where } = connection;
  const name = args.text('name');
  if (error instanceof ApiError && error.code === 409 && name !== undefined) {
    const found = await findObject(cluster.client, accessOf(type).request.resource, { namespace, name }, {});
    const ended =
      found && isFinal(stateOf(found).state)
        ? `, and has ended (${stateOf(found).state}); ${deleteText(connection, found)}`
        : '';
    return new Problem(
      exits.failed,
      `a request ${name} exists already in namespace ${namespace}${ended}; choose another --name, or see it with: ${program} get ${requestWithFlags(connection, type, name)}`,
    );
  }
  if (codeOf(error) === 'TemplateNotFound') {
    const other = type === 'pod' ? 'exec' : 'pod';
    const template = nameWithoutType(args.positionals[0] ?? '');
    const rest = args.rest.length === 0 ? [] : ['--', ...args.rest.map(shellWord)];
    const words = (await readTemplate(connection, other, template))
      ? ['request', other, template, where, ...args.without([...inWhere, 'pod']), ...rest]
      : ['templates', where];
    return new Problem(exitCode, `${message}; with this client: ${[program, ...words].join(' ')}`);
  }
  const { field = '' } = (error instanceof ApiError ? error.causes[0] : undefined) ?? {};
  const flag = flagOf[field];
  return flag === undefined ? problem : new Problem(exitCode, `${message} (${field} is ${flag})`);
}

/**
 * The end of access to standard error, its command or object to standard output, and why the
 * command is missing.
 */
export function printAccess(
  { io, clock }: Context,
  connection: ClusterConnection,
  form: OutputForm,
  ready: KubeObject,
): void {
  io.printError(`${openText(ready, clock.now())}\n`);
  const { why } = stateOf(ready);
  if (why !== '') io.printError(`note: ${why}\n`);
  if (printObject(io, form, ready)) return;
  const command = useText(ready, connection);
  const request = requestWithFlags(connection, typeOf(ready), ready.metadata.name);
  if (command !== '') io.print(`${command}\n`);
  else io.printError(`note: to see what the access permits: ${io.program} get ${request} -o yaml\n`);
}

/** Still without a namespace. @throws Problem for invalid arguments. */
export function requestManifest({ args, clock }: Context, type: TypeName): KubeObject {
  const [template = ''] = args.positionals;
  const templateName = nameWithoutType(template);
  // The API server would report an invalid duration as a denial.
  args.durationMs('for');
  const { resource } = accessOf(type).request;
  const name = args.text('name');
  const [duration, reason, pod] = [args.text('for'), args.text('reason'), args.text('pod')];
  const startAt = startTimeOf(args, clock.now());
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: (name === undefined ? { generateName: `${templateName}-` } : { name }) as KubeObject['metadata'],
    spec: {
      templateName,
      ...(duration === undefined ? {} : { duration }),
      ...(reason === undefined ? {} : { reason }),
      ...(startAt === undefined ? {} : { startAt }),
      ...(args.has('emergency') ? { emergency: true } : {}),
      ...(pod === undefined ? {} : { targetPod: pod }),
    },
  };
}

function startTimeOf(args: Args, nowMs: number): string | undefined {
  const at = args.text('at');
  if (at === undefined) return undefined;
  const instant = parseTime(at);
  if (instant !== undefined) return formatTime(instant);
  if ('error' in parseGoDuration(at))
    throw usageProblem(
      `--at is ${quote(at)}; write RFC 3339 with a zone, such as 2026-11-22T20:00:00Z, or a duration from now, such as 2h`,
    );
  return formatTime(nowMs + (args.durationMs('at') ?? 0));
}

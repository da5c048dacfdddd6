import type { RequestSpec } from '../../api/access/kinds.ts';
import type { KubeObject } from '../../api/object.ts';
import {
  findRequest,
  fullName,
  nameIn,
  requestResource,
  requestWithFlags,
  type TypedObject,
} from '../access-requests.ts';
import { usageProblem } from '../args.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits, requestArgument, unendedArgument } from '../command-spec.ts';
import { detailsOf } from '../details.ts';
import { kubectlExec } from '../kubectl-exec.ts';
import { fields, outputForm, printObject } from '../output.ts';
import { Problem } from '../problem.ts';
import { cannotOpen, isUsable, specOf, stateOf, statusOf } from '../request-state.ts';
import { templateOf } from '../voted-template.ts';
import { endedProblem, nextCommands, openText, waitFor } from '../wait.ts';
import { watchRequests } from './list.ts';
import { printAccess, timeoutFlag } from './request.ts';

export const get: Command = {
  name: 'get',
  summary: 'Show a request: its state, why, when it ends, and how to use it',
  args: [requestArgument],
  examples: ['get payments-shell-x7k2p', 'get pod/debug -o yaml'],
  async run({ args, io, clock, connect }) {
    const form = outputForm(args);
    const connection = await connect();
    const found = await findRequest(connection, args.positionals[0] ?? '');
    if (printObject(io, form, found.object)) return exits.done;
    const template = await templateOf(connection, found);
    io.print(fields(detailsOf(found.object, connection, clock.now(), template)));
    return exits.done;
  },
};

export const watch: Command = {
  name: 'watch',
  summary: 'Wait for a request, or watch all of yours',
  details:
    'With a name, waits until access is open, and prints the command that uses it, as request does. Without one, prints your requests, and then each change until Ctrl-C.',
  args: [{ ...unendedArgument, optional: true }],
  flags: [timeoutFlag],
  examples: ['watch payments-shell-x7k2p --timeout 10m', 'watch -A'],
  async run(context) {
    const { args } = context;
    const [name] = args.positionals;
    if (name === undefined) return watchRequests(context);
    const form = outputForm(args);
    const timeoutMs = args.durationMs('timeout');
    const connection = await context.connect();
    printAccess(context, connection, form, await waitUntilOpen(context, connection, name, timeoutMs));
    return exits.done;
  },
};

export const exec: Command = {
  name: 'exec',
  summary: 'Open a shell in the pod of a request, or run a command',
  details:
    'Waits until access is open, then runs kubectl exec with the same connection. The exit code is then that of the command. The default command is /bin/sh.',
  args: [unendedArgument],
  rest: 'COMMAND',
  flags: [
    timeoutFlag,
    { name: 'container', short: 'c', value: 'NAME', help: 'The container. Default: the one that kubectl chooses.' },
  ],
  examples: ['exec payments-shell-x7k2p', 'exec payments-shell-x7k2p -- ls /tmp'],
  async run(context) {
    const timeoutMs = context.args.durationMs('timeout');
    const connection = await context.connect();
    const ready = await waitUntilOpen(context, connection, context.args.positionals[0], timeoutMs);
    return kubectlExec(context, connection, ready, context.args.rest);
  },
};

/** Rejects with a Problem if it has ended, is ending, or does not exist. */
async function findUnended(connection: ClusterConnection, name: string | undefined): Promise<TypedObject> {
  const found = await findRequest(connection, name ?? '');
  if (cannotOpen(stateOf(found.object).state)) throw endedProblem(found.object);
  return found;
}

/** Rejects with a Problem if access cannot open, or after `timeoutMs`; and as `waitFor` does. */
export async function waitUntilOpen(
  context: Context,
  connection: ClusterConnection,
  name: string | undefined,
  timeoutMs: number | undefined,
): Promise<KubeObject> {
  const found = await findUnended(connection, name);
  return isUsable(found.object) ? found.object : waitFor(context, connection, found, { timeoutMs });
}

export const claim: Command = {
  name: 'claim',
  summary: 'Claim approved access that waits for you, which starts it',
  details: 'Only for templates with claimWithin. The duration of access counts from its opening.',
  args: [unendedArgument],
  flags: [{ name: 'no-wait', help: 'Do not wait until access is open.' }, timeoutFlag],
  examples: ['claim payments-shell-x7k2p'],
  async run(context) {
    const { args, io } = context;
    // All flags before the claim, which cannot be taken back.
    const [form, timeoutMs] = [outputForm(args), args.durationMs('timeout')];
    const connection = await context.connect();
    const found = await findUnended(connection, args.positionals[0]);
    const object = await patchSpec(connection, found, { claimed: true });
    if (args.has('no-wait')) {
      io.printError(`${nextCommands(connection, found.type, object.metadata.name)}\n`);
      if (!printObject(io, form, object)) io.print(`${fullName(object)} claimed\n`);
      return exits.done;
    }
    printAccess(context, connection, form, await waitFor(context, connection, { ...found, object }, { timeoutMs }));
    return exits.done;
  },
};

export const extend: Command = {
  name: 'extend',
  summary: 'Extend open access; open shells stay open',
  args: [unendedArgument],
  flags: [
    { name: 'by', value: 'DURATION', help: 'How much longer, such as 30m. Required.' },
    { name: 'reason', value: 'TEXT', help: 'Why, for the approvers and the audit.' },
    { name: 'no-wait', help: 'Do not wait for the decision.' },
    timeoutFlag,
  ],
  examples: ["extend payments-shell-x7k2p --by 30m --reason 'still reading logs'"],
  async run(context) {
    const { args, io, clock } = context;
    const [by, reason] = [args.text('by'), args.text('reason')];
    if (by === undefined) throw usageProblem('--by is missing: write, for example, --by 30m', 'extend');
    args.durationMs('by');
    const [form, timeoutMs] = [outputForm(args), args.durationMs('timeout')];
    const connection = await context.connect();
    const found = await findUnended(connection, args.positionals[0]);
    const before = specOf(found.object).extensions ?? [];
    const extension = before.length;
    const added = { by, ...(reason === undefined ? {} : { reason }) };
    const patched = await patchSpec(connection, found, { extensions: [...before, added] });
    for (const warning of connection.warnings) io.printError(`note: ${warning}\n`);
    if (args.has('no-wait')) {
      const target = requestWithFlags(connection, found.type, patched.metadata.name);
      io.printError(
        `${openText(patched, clock.now())} without the extension. To see its state: ${io.program} get ${target}\n`,
      );
      if (!printObject(io, form, patched)) io.print(`${fullName(patched)} extension requested\n`);
      return exits.done;
    }
    const decided = await waitFor(context, connection, found, { timeoutMs, extension });
    const { state, message = '', expiresAt } = statusOf(decided).extensions?.[extension] ?? {};
    if (state === 'Denied') throw new Problem(exits.denied, `the extension was denied: ${message}`);
    io.printError(`${openText(decided, clock.now())}\n`);
    if (!printObject(io, form, decided)) io.print(`${fullName(decided)} extended until ${expiresAt}\n`);
    return exits.done;
  },
};

/** Rejects with ApiError 409 if the request has changed: the patch replaces all extensions. */
async function patchSpec(
  { cluster }: ClusterConnection,
  { type, object }: TypedObject,
  spec: Partial<RequestSpec>,
): Promise<KubeObject> {
  const { uid, resourceVersion } = object.metadata;
  return cluster.client.mergePatch(requestResource(type), nameIn(object), { metadata: { uid, resourceVersion }, spec });
}

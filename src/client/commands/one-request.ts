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
import { exits } from '../command-spec.ts';
import { askedPodText, detailsOf } from '../details.ts';
import { extensionVotes } from '../extension-text.ts';
import { kubectlExec } from '../kubectl-exec.ts';
import { outputForm, printObject } from '../output.ts';
import { Problem } from '../problem.ts';
import { requestArgument } from '../request-argument.ts';
import { cannotOpen, specOf, stateOf, statusOf } from '../request-state.ts';
import { lessThanAsked, timeFrom } from '../times.ts';
import { templateOf } from '../voted-template.ts';
import { endedProblem, ifOpen, openText, waitFor } from '../wait.ts';
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
    const { object } = found;
    if (printObject(io, form, object)) return exits.done;
    const [template, askedPod, votes] = await Promise.all([
      templateOf(connection, found),
      askedPodText(connection, object),
      extensionVotes(connection, object),
    ]);
    io.print(
      detailsOf(object, clock.now(), { program: io.program, flags: connection.quotedFlags, template, askedPod, votes }),
    );
    return exits.done;
  },
};

export const watch: Command = {
  name: 'watch',
  summary: 'Wait for a request, or watch all of yours',
  details:
    'With a name, waits until access is open, and prints the command that uses it, as request does. Without one, prints your requests, and then each change until Ctrl-C.',
  args: [{ ...requestArgument, optional: true }],
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
  args: [requestArgument],
  rest: 'COMMAND',
  flags: [
    timeoutFlag,
    { name: 'container', short: 'c', value: 'NAME', help: 'The container. Default: the one that kubectl chooses.' },
  ],
  examples: ['exec payments-shell-x7k2p', 'exec payments-shell-x7k2p -- ls /tmp'],
  async run(context) {
    const timeoutMs = context.args.durationMs('timeout');
    const connection = await context.connect();
    const ready = await waitUntilOpen(context, connection, context.args.positionals[0] ?? '', timeoutMs);
    return kubectlExec(context, connection, ready, context.args.rest);
  },
};

/** Rejects with a Problem if access cannot open, or after `timeoutMs`; and as `waitFor` does. */
export async function waitUntilOpen(
  context: Context,
  connection: ClusterConnection,
  name: string,
  timeoutMs: number | undefined,
) {
  const found = await findRequest(connection, name);
  if (cannotOpen(stateOf(found.object).state)) throw endedProblem(found.object);
  return ifOpen(found.object) ?? waitFor(context, connection, found, { timeoutMs, done: ifOpen });
}

export const claim: Command = {
  name: 'claim',
  summary: 'Claim approved access that waits for you, which starts it',
  details: 'Only for templates with claimWithin. The duration of access counts from its opening.',
  args: [requestArgument],
  flags: [timeoutFlag],
  examples: ['claim payments-shell-x7k2p'],
  async run(context) {
    const { args } = context;
    // All flags before the claim, which cannot be taken back.
    const [form, timeoutMs] = [outputForm(args), args.durationMs('timeout')];
    const connection = await context.connect();
    const found = await findRequest(connection, args.positionals[0] ?? '');
    if (cannotOpen(stateOf(found.object).state)) throw endedProblem(found.object);
    const object = await patchSpec(connection, found, { claimed: true });
    const claimed = { ...found, object };
    printAccess(context, connection, form, await waitFor(context, connection, claimed, { timeoutMs, done: ifOpen }));
    return exits.done;
  },
};

export const extend: Command = {
  name: 'extend',
  summary: 'Extend open access; open shells stay open',
  args: [requestArgument],
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
    const found = await findRequest(connection, args.positionals[0] ?? '');
    if (cannotOpen(stateOf(found.object).state)) throw endedProblem(found.object);
    const before = specOf(found.object).extensions ?? [];
    const added = { by, ...(reason === undefined ? {} : { reason }) };
    const target = requestWithFlags(connection, found.type, found.object.metadata.name);
    const patched = await patchSpec(connection, found, { extensions: [...before, added] });
    for (const warning of connection.warnings) io.printError(`note: ${warning}\n`);
    if (args.has('no-wait')) {
      const { endsMs } = stateOf(patched);
      const end = endsMs === undefined ? '' : `, at ${timeFrom(endsMs, clock.now())}`;
      io.printError(
        `the server decides the extension; if the template requires approvals for it, it waits for them at most until access ends${end}. To see it: ${io.program} get ${target}\n`,
      );
      if (!printObject(io, form, patched)) io.print(`${fullName(found.object)} extension requested\n`);
      return exits.done;
    }
    const decided = await waitFor(context, connection, found, {
      timeoutMs,
      extensionText: (request) => statusOf(request).extensions?.[before.length]?.message ?? '',
      done: (request) => {
        const state = statusOf(request).extensions?.[before.length]?.state;
        return state === 'Granted' || state === 'Refused' ? request : undefined;
      },
    });
    const { state, message = '' } = statusOf(decided).extensions?.[before.length] ?? {};
    if (state === 'Refused') throw new Problem(exits.denied, `the extension was refused: ${message}`);
    io.printError(`${openText(decided, clock.now())}\n`);
    if (!printObject(io, form, decided))
      io.print(`${fullName(decided)} extended by ${extendedText(found.object, decided, by)}\n`);
    return exits.done;
  },
};

/** The template, the pod, or an approver may have allowed less than `asked`. */
function extendedText(before: KubeObject, after: KubeObject, asked: string): string {
  const addedMs = (stateOf(after).endsMs ?? 0) - (stateOf(before).endsMs ?? 0);
  const less = lessThanAsked(addedMs, asked);
  return less === undefined ? asked : `${less} instead of ${asked}`;
}

/** Rejects with ApiError 409 if the request has changed: the patch replaces all extensions. */
async function patchSpec(
  { cluster }: ClusterConnection,
  { type, object }: TypedObject,
  spec: Partial<RequestSpec>,
): Promise<KubeObject> {
  const { uid, resourceVersion } = object.metadata;
  return cluster.client.mergePatch(requestResource(type), nameIn(object), { metadata: { uid, resourceVersion }, spec });
}

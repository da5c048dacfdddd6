import type { KubeObject } from '../../api/object.ts';
import { formatTime } from '../../kit/clock.ts';
import { requesterOf, requestResource, typeNames } from '../access-requests.ts';
import { type ClusterConnection, searchedText } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits, type FlagSpec } from '../command-spec.ts';
import { follow } from '../follow.ts';
import { outputForm, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { isFinal, statusOf } from '../request-state.ts';
import { requestTable } from '../request-table.ts';

const flags: readonly FlagSpec[] = [
  { name: 'everyone', help: 'Also requests of other people.' },
  { name: 'user', value: 'NAME', help: 'Requests of this user instead of your own.' },
];

export const list: Command = {
  name: 'list',
  summary: 'List your requests',
  details: 'Lists your own requests in one namespace, or with -A in all. LEFT is the time until access ends.',
  flags: [...flags, { name: 'watch', short: 'w', help: 'After the list, print each change until Ctrl-C.' }],
  examples: ['list', 'list -A -o wide', 'list --everyone -w'],
  async run(context) {
    if (context.args.has('watch')) return watchRequests(context);
    const { args, io, clock, connect } = context;
    const form = outputForm(args);
    const connection = await connect();
    const matches = await requestMatcher(context, connection);
    const printer = new Printer(io, form, requestTable({ ...tableOptions(context), now: () => clock.now() }));
    const count = await printPages(connection, typeNames.map(requestResource), printer, matches);
    if (count === 0) io.printError(`${await nothingFoundText(context, connection)}\n`);
    return exits.done;
  },
};

const tableOptions = ({ args }: Context) => ({
  who: args.has('everyone') || args.text('user') !== undefined,
  namespaces: args.has('all-namespaces'),
});

/** How to request access, or to see requests of others. */
async function nothingFoundText({ args, io }: Context, connection: ClusterConnection): Promise<string> {
  const where = await searchedText(connection, typeNames.map(requestResource));
  const flags = connection.scopeWhere;
  const how = `to request access: ${io.program} templates ${flags}, then ${io.program} request`;
  if (args.has('everyone')) return `no requests found ${where}; ${how}`;
  const user = args.text('user');
  const subject = user === undefined ? `you (${(await connection.whoAmI()).username}) have` : `${user} has`;
  return `${subject} no requests ${where}; ${user === undefined ? `${how}; ` : ''}to see those of others: ${io.program} list --everyone ${flags}`;
}

/** Asks the API server for the user name if the flags name none. */
async function requestMatcher(
  { args }: Context,
  connection: ClusterConnection,
): Promise<(request: KubeObject) => boolean> {
  if (args.has('everyone')) return () => true;
  const user = args.text('user') ?? (await connection.whoAmI()).username;
  return (request) => requesterOf(request) === user;
}

/** Prints the requests, then each change, until the user presses Ctrl-C. */
export async function watchRequests(context: Context): Promise<number> {
  const { args, io, clock, signal, connect } = context;
  const form = outputForm(args);
  const connection = await connect();
  const matches = await requestMatcher(context, connection);
  const table = requestTable({ ...tableOptions(context), now: () => clock.now() });
  const printer = new Printer(io, form, table, { stream: true });
  const followed = typeNames.map((type) => ({ resource: requestResource(type), scope: connection.scope }));
  await follow<never>(connection, followed, {
    clock,
    signal,
    toContinue: 'Then run the command again',
    onChange: (request, before) => {
      const shown = request ?? (before && asDeleted(before, formatTime(clock.now())));
      if (shown && matches(shown)) printer.add([shown]);
      return undefined;
    },
  });
  return exits.done;
}

/** The last row of a deleted request: the server closes access before its finalizer goes. */
const asDeleted = (request: KubeObject, now: string): KubeObject => {
  const { state = 'Waiting', ...status } = statusOf(request);
  const ended = isFinal(state) ? state : status.grant ? 'Revoked' : 'Withdrawn';
  const deletionTimestamp = request.metadata.deletionTimestamp ?? now;
  return { ...request, metadata: { ...request.metadata, deletionTimestamp }, status: { ...status, state: ended } };
};

import type { KubeObject } from '../../api/object.ts';
import { connectSubresources } from '../../audit/record.ts';
import { formatTime } from '../../kit/clock.ts';
import { fullName, requesterOf, requestResource, typeNames, typeOf } from '../access-requests.ts';
import { searchedText } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { journalLines, sinceOf, textIn } from '../journal.ts';
import { outputForm, type Presentation, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { isFinal, specOf, stateOf, statusOf } from '../request-state.ts';

export const who: Command = {
  name: 'who',
  summary: 'Show who has access now; with --journal, who entered',
  details:
    'Lists the open grants of everyone in a namespace, or with -A in all. STATE is Ending until the server has closed the access. REQUEST is the argument of show and revoke. With --journal, JSON and YAML contain the entries into pods in the same List, with the kind AuditRecord. HOW ends with allowed, opened, or denied if the server decided on the entry, and with observed if it only recorded it. For a session through the gateway, only the journal of the gateway names the user; others name its ServiceAccount. FILE is that of the server’s flag --audit-log, or - for standard input; audit verify says whether it is unchanged.',
  flags: [
    { name: 'all', help: 'Also requests that wait, were denied, or have ended.' },
    {
      name: 'journal',
      value: 'FILE',
      repeated: true,
      help: 'Also who entered pods, from audit journals.',
      complete: 'files',
    },
    {
      name: 'since',
      value: 'DURATION',
      help: 'With --journal: only entries in this time before now, such as 12h or 90d. Default: all.',
    },
  ],
  examples: ['who -n payments', 'who -A --journal audit.jsonl --since 24h'],
  async run(context) {
    const { args, io, connect } = context;
    const form = outputForm(args);
    const connection = await connect();
    const isShown = (request: KubeObject): boolean => {
      const { state } = stateOf(request);
      return args.has('all') || (statusOf(request).grant !== undefined && !isFinal(state));
    };
    const files = args.texts('journal');
    const resources = typeNames.map(requestResource);
    const isTable = form === 'table' || form === 'wide';
    const printer = new Printer<KubeObject>(io, form, grantTable(args.has('all-namespaces')));
    // In JSON and YAML, grants and entries are one List, so `end` is called once, after the
    // entries.
    const grants = files.length === 0 || isTable ? printer : { add: printer.add.bind(printer), end: () => undefined };
    const count = await printPages(connection, resources, grants, isShown);
    const nothing = args.has('all') ? 'no requests found' : 'no one has access';
    if (count === 0) io.printError(`${nothing} ${await searchedText(connection, resources)}\n`);
    if (files.length === 0) return exits.done;
    const entries = await entriesIn(context, files, connection.scope.namespace);
    if (entries.length === 0) {
      const { namespace } = connection.scope;
      const [where, when] = [
        namespace === undefined ? '' : ` in namespace ${namespace}`,
        args.text('since') === undefined ? '' : ' in the time of --since',
      ];
      io.printError(`the journals have no entry into a pod${where}${when}\n`);
    }
    if (isTable) {
      if (count > 0 && entries.length > 0) io.print('\n');
      new Printer(io, form, entryTable).add(entries);
    } else {
      printer.add(entries);
      printer.end();
    }
    return exits.done;
  },
};

function grantTable(namespaces: boolean): Presentation<KubeObject> {
  const columns = [
    { title: 'NAMESPACE', text: ({ metadata }: KubeObject) => metadata.namespace ?? '' },
    { title: 'WHO', text: grantedTo },
    { title: 'STATE', text: (request: KubeObject) => stateOf(request).state },
    {
      title: 'REQUEST',
      long: true,
      text: (request: KubeObject) => `${typeOf(request)}/${request.metadata.name}`,
    },
    { title: 'POD', text: (request: KubeObject) => stateOf(request).pod },
    { title: 'UNTIL', long: true, text: (request: KubeObject) => timeText(stateOf(request).endsMs) },
    { title: 'APPROVED BY', text: approvedBy },
    { title: 'REASON', text: (request: KubeObject) => specOf(request).reason ?? '' },
    { title: 'TEMPLATE', wide: true, text: (request: KubeObject) => specOf(request).templateName ?? '' },
    {
      title: 'SINCE',
      wide: true,
      text: (request: KubeObject) => statusOf(request).grant?.startsAt ?? request.metadata.creationTimestamp ?? '',
    },
  ];
  return { columns: namespaces ? columns : columns.slice(1), object: (request) => request, name: nameOf, blocks: true };
}

const timeText = (ms: number | undefined): string => (ms === undefined ? '' : formatTime(ms));

/** The requester, and the groups that a grant of `AllowedGroups` names. */
function grantedTo(request: KubeObject): string {
  const groups = (statusOf(request).grant?.subjects ?? [])
    .filter(({ kind }) => kind === 'Group')
    .map(({ name }) => name);
  return groups.length === 0 ? requesterOf(request) : `${requesterOf(request)}, group ${groups.join(', ')}`;
}

function approvedBy(request: KubeObject): string {
  if (specOf(request).emergency) return 'emergency';
  const { approval, grant } = statusOf(request);
  const counted = new Set(grant?.votes ?? []);
  return (approval?.votes ?? [])
    .filter(({ uid }) => counted.has(uid))
    .map(({ voter }) => voter)
    .join(', ');
}

/**
 * An entry into a pod, or an attempt that a webhook denied. Through the gateway, only the gateway's
 * line (`session`, `opened`) has the user; the calls that it refused need not be entries.
 */
function isEntry(record: object): boolean {
  const [event, verdict, operation] = ['event', 'verdict', 'what.operation'].map((path) => textIn(record, path));
  if (event === 'session') return operation === 'CONNECT' && verdict === 'opened';
  return connectSubresources.some((subresource) => subresource === event);
}

const entryTable: Presentation<KubeObject> = {
  columns: [
    { title: 'ENTERED', long: true, text: (record) => textIn(record, 'time').replace(/\.\d+/, '') },
    { title: 'WHO', text: (record) => textIn(record, 'who.user') },
    {
      title: 'HOW',
      text: (record) => `${textIn(record, 'stream') || textIn(record, 'event')} ${textIn(record, 'verdict')}`,
    },
    { title: 'NAMESPACE', text: (record) => textIn(record, 'what.namespace') },
    { title: 'POD', text: (record) => textIn(record, 'what.name') },
    { title: 'REQUEST', long: true, text: (record) => textIn(record, 'request') },
  ],
  object: (record) => record,
  name: nameOf,
};

/** In the List that JSON and YAML print. */
const entryKind = 'AuditRecord';

function nameOf(object: KubeObject): string {
  return object.kind === entryKind ? `pod/${textIn(object, 'what.name')}` : fullName(object);
}

/** Journal lines about entries into pods since `--since`; by default in all namespaces. */
async function entriesIn(
  { args, io, clock }: Context,
  files: readonly string[],
  namespace: string | undefined,
): Promise<KubeObject[]> {
  const found: KubeObject[] = [];
  for await (const { record } of journalLines(files, io, sinceOf(args, clock.now()))) {
    if (!isEntry(record)) continue;
    if (namespace !== undefined && textIn(record, 'what.namespace') !== namespace) continue;
    found.push({ ...record, kind: entryKind } as unknown as KubeObject);
  }
  return found;
}

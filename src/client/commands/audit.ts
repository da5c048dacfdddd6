import { accesses } from '../../api/access/kinds.ts';
import { auditCommand } from '../../cli/audit.ts';
import { parseTime } from '../../kit/clock.ts';
import { listIn, own } from '../../kit/json-value.ts';
import { usageProblem } from '../args.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { type JournalLine, journalLines, sinceOf, textIn } from '../journal.ts';
import { json, outputForm, type Presentation, Printer } from '../output.ts';

export const auditVerify: Command = {
  name: 'audit verify',
  summary: 'Verify audit journals against their signed heads',
  details:
    'Exits with 0 if the journals are unchanged up to the last heads, 1 if changed, 2 if they cannot be checked, and 3 if no signed head covers the lines of a chain. It reads the heads from --heads, or from the cluster: from the namespace drawbridge-system, or that of -n.',
  args: [{ name: 'FILE', repeated: true, complete: 'files' }],
  flags: [
    {
      name: 'heads',
      value: 'FILE',
      repeated: true,
      help: 'The heads, as kubectl get configmap NAME -o json prints them.',
      complete: 'files',
    },
    { name: 'key', value: 'KEY', repeated: true, help: 'A public key that signs heads, in base64 or base64url.' },
    {
      name: 'recordings',
      value: 'DIR',
      help: "Also check the recordings of sessions in this folder: the one of the gateway's flag --recordings, or a copy of its bucket.",
      complete: 'files',
    },
    {
      name: 'session',
      value: 'SESSION',
      help: 'With --recordings: check only the recording of this session.',
      complete: 'sessions',
    },
    { name: 'partial', help: 'Accept that older lines, or all lines of some replicas, are absent.' },
  ],
  examples: ['audit verify audit.jsonl', 'audit verify audit.jsonl -n drawbridge-system -o json'],
  run({ args, io, connect }) {
    const form = args.text('output') ?? 'text';
    const given = (flag: string): string[] => args.texts(flag).map((value) => `--${flag}=${value}`);
    const flags = ['heads', 'key', 'recordings', 'session', 'namespace'].flatMap(given);
    if (args.has('all-namespaces'))
      throw usageProblem('audit verify takes no --all-namespaces; omit it; -n selects the namespace of the heads');
    const command = [
      'verify',
      ...flags,
      ...(args.has('partial') ? ['--partial'] : []),
      `--output=${form}`,
      '--',
      ...args.positionals,
    ];
    return auditCommand(command, {
      stdin: io.stdin,
      print: (text) => io.print(text),
      printError: (text) => io.printError(text),
      cluster: async () => (await connect()).cluster.client,
    });
  },
};

export const auditReport: Command = {
  name: 'audit report',
  summary: 'Report who had access to what, why, and approved by whom',
  details:
    'Reads audit journals of any version: one row for each grant, with its end, the user who ended it, and the review of an emergency; with -n, only of that namespace. Give the files of all replicas, in any order. To verify them, use audit verify. With -o csv, an apostrophe precedes what a spreadsheet would read as a formula.',
  args: [{ name: 'FILE', repeated: true, complete: 'files' }],
  flags: [
    {
      name: 'since',
      value: 'DURATION',
      help: 'Only access that was open in this time before now, such as 12h or 90d. Default: all.',
    },
  ],
  examples: ['audit report audit.jsonl --since 90d -o csv'],
  async run({ args, io, clock }) {
    const csv = args.text('output') === 'csv';
    const form = csv ? 'table' : outputForm(args);
    const sinceMs = sinceOf(args, clock.now());
    const namespace = args.text('namespace');
    const lines: JournalLine[] = [];
    for await (const line of journalLines(args.positionals, io, Number.NEGATIVE_INFINITY)) {
      if (isReported(line.record)) lines.push(line);
    }
    const { grants, unmatched } = grantsIn(lines);
    const rows = grants.filter(
      (grant) => !(endMsOf(grant) < sinceMs) && (namespace === undefined || grant.namespace === namespace),
    );
    if (csv) io.print(csvOf(rows));
    else {
      const printer = new Printer(io, form, reportTable);
      printer.add(rows);
      printer.end();
    }
    if (rows.length === 0)
      io.printError(
        `the journals have no grant${namespace === undefined ? '' : ` in namespace ${namespace}`}${sinceMs === Number.NEGATIVE_INFINITY ? '' : ' in the time of --since'}\n`,
      );
    if (unmatched > 0)
      io.printError(
        `${unmatched} lines are about grants that these journals do not contain; add older files, and the files of all replicas\n`,
      );
    return exits.done;
  },
};

/** A grant with extensions and end. `until`: planned; `ended`: actual; `end`: why. RFC 3339. */
interface GrantRow {
  readonly who: string;
  readonly namespace: string;
  readonly request: string;
  readonly template: string;
  readonly pod: string;
  readonly granted: string;
  readonly until: string;
  readonly ended: string;
  readonly end: string;
  readonly approvedBy: string;
  readonly why: string;
  /** Who revoked or deleted the request, or denied it by a vote. */
  readonly endedBy: string;
  /** Who reviewed the emergency, and the verdict. */
  readonly review: string;
}

/** Lines about an object of a grant, such as a RoleBinding without its request, end no grant. */
const isReported = (record: object): boolean =>
  accesses.some(({ request }) => request.resource.kind === textIn(record, 'what.kind')) &&
  (['grant', 'revocation', 'review'].includes(textIn(record, 'event')) || endsByUser(record));

/** A user revoked or deleted the request. */
const endsByUser = (record: object): boolean =>
  textIn(record, 'event') === 'admission' &&
  textIn(record, 'verdict') === 'allowed' &&
  own(record, 'dryRun') !== true &&
  (textIn(record, 'message') === 'revokes the access' || textIn(record, 'what.operation') === 'DELETE');

/** In the order of time. `unmatched`: lines whose grant is in none of the files. */
function grantsIn(lines: readonly JournalLine[]): { readonly grants: GrantRow[]; readonly unmatched: number } {
  const grants = new Map<string, GrantRow>();
  const later: object[] = [];
  const endedByUser: object[] = [];
  for (const { record } of [...lines].sort((a, b) => a.atMs - b.atMs)) {
    const isGrant = textIn(record, 'event') === 'grant';
    const verdict = textIn(record, 'verdict');
    if (textIn(record, 'event') === 'admission') endedByUser.push(record);
    else if (!isGrant || verdict === 'extended') later.push(record);
    // A denial changes nothing. If a grant has a second line, a retry wrote it.
    else if (verdict === 'granted' && !grants.has(grantKeyOf(record))) grants.set(grantKeyOf(record), grantOf(record));
  }
  let unmatched = 0;
  // After all grants: the clocks of replicas differ, so an end may be older than its grant.
  for (const record of later) {
    const grant = grants.get(grantKeyOf(record));
    if (grant) grants.set(grantKeyOf(record), withChange(grant, record));
    else unmatched += 1;
  }
  for (const record of endedByUser) {
    const grant = grants.get(grantKeyOf(record));
    const operation = textIn(record, 'what.operation');
    // The server itself deletes a request after another end.
    if (grant?.endedBy === '' && grant.end === (operation === 'DELETE' ? 'Deleted' : 'Revoked'))
      grants.set(grantKeyOf(record), { ...grant, endedBy: textIn(record, 'who.user') });
  }
  return { grants: [...grants.values()], unmatched };
}

/** The uid of the request. A line without one is a grant of its own. */
const grantKeyOf = (record: object): string =>
  textIn(record, 'what.uid') || `${textIn(record, 'chain')} ${textIn(record, 'seq')}`;

const grantOf = (record: object): GrantRow => ({
  who: textIn(record, 'who.user'),
  namespace: textIn(record, 'what.namespace'),
  request: textIn(record, 'what.name'),
  template: textIn(record, 'template'),
  pod: textIn(record, 'pod'),
  granted: textIn(record, 'time'),
  until: textIn(record, 'expiresAt'),
  ended: '',
  end: '',
  approvedBy: textIn(record, 'code') === 'Emergency' ? 'emergency' : votersOf(record),
  why: textIn(record, 'reason'),
  endedBy: '',
  review: textIn(record, 'code') === 'Emergency' ? 'not in these journals' : '',
});

/** With an extension, end, or review. Of several ends, the first counts. */
function withChange(grant: GrantRow, record: object): GrantRow {
  if (textIn(record, 'event') === 'grant')
    return {
      ...grant,
      until: textIn(record, 'expiresAt'),
      approvedBy: joinNames(grant.approvedBy, votersOf(record)),
    };
  if (textIn(record, 'event') === 'review') return { ...grant, review: verdictOf(record) };
  return grant.ended === ''
    ? { ...grant, ended: textIn(record, 'time'), end: textIn(record, 'code'), endedBy: votersOf(record) }
    : grant;
}

const verdictOf = (record: object): string => {
  const [vote] = listIn(record, 'votes');
  return `${votersOf(record)}: ${textIn(vote, 'decision') === 'Deny' ? 'not justified' : 'justified'}`;
};

/** Epoch ms; NaN if the journals lack it, so that every `--since` includes the grant. */
const endMsOf = ({ ended, until }: GrantRow): number => parseTime(ended || until) ?? Number.NaN;

const votersOf = (record: object): string =>
  listIn(record, 'votes')
    .map((vote) =>
      [textIn(vote, 'voter'), own(vote, 'onBehalfOf') === undefined ? '' : `for ${textIn(vote, 'onBehalfOf')}`]
        .join(' ')
        .trim(),
    )
    .join(', ');

/** Without duplicates. */
const joinNames = (a: string, b: string): string =>
  [...new Set([...a.split(', '), ...b.split(', ')])].filter((one) => one !== '').join(', ');

const columnsOfReport = [
  'granted',
  'ended',
  'end',
  'who',
  'namespace',
  'template',
  'pod',
  'approvedBy',
  'why',
  'until',
  'request',
  'endedBy',
  'review',
] as const;
const titles: Readonly<Record<string, string>> = { approvedBy: 'APPROVED BY', endedBy: 'ENDED BY' };
const reportTable: Presentation<GrantRow> = {
  columns: columnsOfReport.map((field) => ({
    title: titles[field] ?? field.toUpperCase(),
    text: (row: GrantRow) => (field === 'granted' || field === 'ended' ? row[field].replace(/\.\d+/, '') : row[field]),
    wide: field === 'until' || field === 'request',
    long: field === 'granted' || field === 'ended',
  })),
  object: (row) => row,
  name: ({ request }) => request,
  blocks: true,
};

/** RFC 4180, with every control character escaped as in JSON. */
function csvOf(rows: readonly GrantRow[]): string {
  const line = (cells: readonly string[]): string => `${cells.map(csvCell).join(',')}\r\n`;
  return [line([...columnsOfReport]), ...rows.map((row) => line(columnsOfReport.map((field) => row[field])))].join('');
}

/** Where a spreadsheet would evaluate a formula; a semicolon separates cells in some locales. */
const formula = /(^|;)(?=[ "']*[=+\-@＝＋－＠])/g;

function csvCell(text: string): string {
  const shown = json(text).slice(1, -1).replaceAll('\\"', '"').replaceAll('\\\\', '\\');
  const safe = shown.replace(formula, "$1'");
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

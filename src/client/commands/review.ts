import { open } from 'node:fs/promises';
import { firstViolation } from '../../access/policy/policy.ts';
import { templatePolicy } from '../../access/policy/template-policy.ts';
import { accessOfTemplate, type TemplateSpec } from '../../api/access/kinds.ts';
import { type TemplateKind, templateKinds } from '../../api/access/names.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { describe, quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { loadYaml } from '../../kube/yaml.ts';
import { type Args, usageProblem } from '../args.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { type JournalLine, journalLines, sinceOf, textIn } from '../journal.ts';
import { outputForm, type Presentation, Printer } from '../output.ts';
import { Problem } from '../problem.ts';
import {
  type Difference,
  grantIn,
  isGrantLine,
  isRequestLine,
  type RecordedGrant,
  type ReviewedTemplate,
  replay,
} from '../replay.ts';

/** Maximum size of the template file, bytes. */
const MAX_TEMPLATE = 1024 * 1024;
/** Maximum number of requests and grants of the template in memory. */
const MAX_LINES = 100_000;
/** Maximum number of request names that a row of JSON or YAML lists. */
const MAX_NAMES = 10;

export const review: Command = {
  name: 'review',
  summary: 'Show who would gain or lose access if a template were changed',
  details:
    'Replays the requests in audit journals against a changed template, with the rules by which the server decides, and lists what would differ: one row for each person and difference. It calls no server. Give the files of all replicas, in any order. It cannot decide some lines, such as those of older versions; their rows give the reason. It ignores limits on the number of grants, the groups of voters, and permissions without a grant that the journals do not mention.',
  args: [
    { name: 'TEMPLATE', complete: 'files' },
    { name: 'JOURNAL', repeated: true, complete: 'files' },
  ],
  flags: [
    {
      name: 'since',
      value: 'DURATION',
      help: 'Only requests created in this time before now, such as 12h or 90d. Default: all.',
    },
  ],
  examples: ['review shell.yaml audit.jsonl --since 90d', 'review shell.yaml audit.jsonl -o json'],
  async run({ args, io, clock }) {
    const form = outputForm(args);
    const [file = '', ...journals] = args.positionals;
    const sinceMs = sinceOf(args, clock.now());
    const template = await readTemplate(file, args);
    const requests: JournalLine[] = [];
    const grants = new Map<string, RecordedGrant>();
    for await (const line of journalLines(journals, io, sinceMs)) {
      if (isRequestLine(line, template)) requests.push(line);
      else if (isGrantLine(line, template)) addGrant(grants, line);
      if (requests.length + grants.size > MAX_LINES)
        throw new Problem(
          exits.failed,
          `the journals have more than ${MAX_LINES} requests and grants of this template; choose a shorter time with --since`,
        );
    }
    const rows = new Map<string, Row>();
    let differing = 0;
    for (const line of requests) {
      const differences = replay(line, template, grants.get(textIn(line.record, 'what.uid')));
      if (differences.length > 0) differing += 1;
      for (const difference of differences) addDifference(rows, line, difference);
    }
    const printer = new Printer(io, form, reviewTable);
    printer.add([...rows.values()].sort(byChange));
    printer.end();
    const count = `${requests.length} ${requests.length === 1 ? 'request' : 'requests'}`;
    io.printError(
      requests.length === 0
        ? `the journals have no request through ${template.kind} ${template.namespace}/${template.name}${sinceMs === Number.NEGATIVE_INFINITY ? '' : ' in the time of --since'}\n`
        : `${count}; ${requests.length - differing} of them without a difference\n`,
    );
    return exits.done;
  },
};

/** One difference for one person, and the number of requests that show it. */
interface Row extends Difference {
  readonly who: string;
  requests: number;
  /** The names of the first of these requests, at most MAX_NAMES. */
  readonly names: string[];
  /** When the latest of the requests was created, RFC 3339. */
  last: string;
}

function addDifference(rows: Map<string, Row>, { record }: JournalLine, { change, what }: Difference): void {
  const who = textIn(record, 'who.user');
  const key = JSON.stringify([change, who, what]);
  const row = rows.get(key) ?? { change, who, what, requests: 0, names: [], last: '' };
  rows.set(key, row);
  const [name, time] = [textIn(record, 'what.name'), textIn(record, 'time')];
  row.requests += 1;
  if (row.names.length < MAX_NAMES) row.names.push(name);
  if (time > row.last) row.last = time;
}

/** Adds the grant by the uid of its request. Ignores a second line for it, because a retry of the server may write the line twice. */
function addGrant(grants: Map<string, RecordedGrant>, line: JournalLine): void {
  const [uid, grant] = [textIn(line.record, 'what.uid'), grantIn(line)];
  if (uid !== '' && grant && !grants.has(uid)) grants.set(uid, grant);
}

const changeOrder: readonly Difference['change'][] = ['gains', 'loses', 'not decidable'];
const byChange = (a: Row, b: Row): number =>
  changeOrder.indexOf(a.change) - changeOrder.indexOf(b.change) || a.who.localeCompare(b.who);

const reviewTable: Presentation<Row> = {
  columns: [
    { title: 'WHO', text: ({ who }) => who },
    { title: 'CHANGE', text: ({ change }) => change },
    { title: 'REQUESTS', text: ({ requests }) => String(requests) },
    { title: 'LAST', wide: true, text: ({ last }) => last.replace(/\.\d+/, '') },
    { title: 'NAMES', wide: true, text: ({ names }) => names.join(', ') },
    { title: 'WHAT', long: true, text: ({ what }) => what },
  ],
  object: (row) => row,
  name: ({ who }) => who,
};

/** Reads the changed template. Rejects with a Problem if the file has none, or if it violates the schema or `templatePolicy`. */
async function readTemplate(file: string, args: Args): Promise<ReviewedTemplate> {
  const object = await parseFile(file);
  const kind = templateKinds.find((one) => one === own(object, 'kind'));
  if (!kind)
    throw new Problem(exits.failed, `${quote(file, 256)} has no ${templateKinds.join(' or ')}; name the file of one`);
  const metadata = own(object, 'metadata');
  const [name, given] = [textIn(metadata, 'name'), args.text('namespace')];
  const namespace = textIn(metadata, 'namespace') || given;
  if (name === '') throw new Problem(exits.failed, `the template in ${quote(file, 256)} has no metadata.name; add it`);
  if (!namespace) throw usageProblem(`the template in ${quote(file, 256)} has no metadata.namespace; give it with -n`);
  if (given !== undefined && given !== namespace)
    throw usageProblem(`the template is in namespace ${namespace}, and -n is ${quote(given)}; omit -n`);
  const spec = specOf(kind, object);
  const violation = firstViolation(templatePolicy, {
    kind,
    namespace,
    name,
    spec,
    grantable: spec.accessConfig.rules ?? [],
  });
  if (violation)
    throw new Problem(exits.failed, `the server would deny the template: ${violation.code}: ${violation.message}`);
  return { kind, namespace, name, spec };
}

function specOf(kind: TemplateKind, object: unknown): TemplateSpec {
  const read = readBySchema<TemplateSpec>(accessOfTemplate(kind).template.structural.spec, own(object, 'spec'), 'spec');
  if (read.ok) return read.value;
  const found = read.errors.map(({ field, message }) => `${field} ${message}`).join('; ');
  throw new Problem(exits.failed, `the API server would deny the template: ${found}`);
}

async function parseFile(path: string): Promise<unknown> {
  try {
    const file = await open(path);
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_TEMPLATE + 1), 0, MAX_TEMPLATE + 1, 0);
      if (bytesRead > MAX_TEMPLATE) throw new Error(`it is larger than ${MAX_TEMPLATE} bytes`);
      return loadYaml(buffer.toString('utf8', 0, bytesRead));
    } finally {
      await file.close();
    }
  } catch (error) {
    const [why] = describe(error).split('\n');
    throw new Problem(exits.failed, `cannot read the template ${quote(path, 256)}: ${why}`);
  }
}

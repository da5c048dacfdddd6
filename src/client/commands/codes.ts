import { quote } from '../../kit/errors.ts';
import { shorten } from '../../kit/shorten.ts';
import { wrap } from '../../kit/wrap.ts';
import { usageProblem } from '../args.ts';
import { type CodeEntry, codeEntries, endEntries } from '../code-entries.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { nearestNames } from '../nearest.ts';
import { fields, outputForm, type Presentation, Printer } from '../output.ts';

/** Characters of a line, so that the list fits most terminals and prints alike in a pipe. */
const WIDTH = 100;
/** Leaves about as much for what to do. */
const MEANING_WIDTH = 38;
const TEXT_WIDTH = 80;

/** Not of drawbridge, so in no list of its codes. */
const forbidden: CodeEntry = {
  code: 'Forbidden',
  topic: 'Kubernetes',
  audience: 'everyone',
  meaning:
    'Kubernetes itself refused the call (HTTP 403), mostly because no Role gives you the verb on the resource that the message names. It is no answer of drawbridge.',
  remedy:
    'To see what you may do: kubectl auth can-i --list -n NAMESPACE. Ask an administrator to bind a role that has the permission, such as a ClusterRole of the chart: drawbridge-requester, drawbridge-approver, or drawbridge-viewer.',
};

const all: readonly CodeEntry[] = [...codeEntries, ...endEntries, forbidden];

export const helpCodes: Command = {
  name: 'help codes',
  summary: 'List the codes of denials and errors, and what to do',
  details:
    'One line for each code, in the order of the alphabet, with texts cut to fit; explain-code CODE prints them whole. Makes no call.',
  examples: ['help codes', 'help codes -o json'],
  async run({ args, io }) {
    const form = outputForm(args);
    const lines = { print: io.print, columns: Math.min(io.columns ?? WIDTH, WIDTH) };
    const printer = new Printer(lines, form, tableOf(form === 'table' ? MEANING_WIDTH : undefined));
    printer.add([...codeEntries].sort((a, b) => (a.code < b.code ? -1 : 1)));
    printer.end();
    return exits.done;
  },
};

export const explainCode: Command = {
  name: 'explain-code',
  summary: 'Explain a code of a denial, an error, or an end, and what to do',
  details: 'Capital and small letters are the same. Makes no call.',
  args: [{ name: 'CODE', complete: [...new Set(all.map(({ code }) => code))] }],
  examples: ['explain-code NotEligible'],
  async run({ args, io }) {
    const form = outputForm(args);
    const [asked = ''] = args.positionals;
    const found = all.filter(({ code }) => code.toLowerCase() === asked.toLowerCase());
    if (found.length === 0) throw unknownCode(asked, io.program);
    if (form === 'table' || form === 'wide') io.print(found.map(blockOf).join('\n'));
    else {
      const printer = new Printer(io, form, tableOf());
      printer.add(found);
      printer.end();
    }
    return exits.done;
  },
};

function unknownCode(asked: string, program: string) {
  const names = new Map(all.map(({ code }) => [code.toLowerCase(), code]));
  const near = nearestNames(asked.toLowerCase(), [...names.keys()]);
  const suggested = near.slice(0, 3).map((name) => names.get(name));
  const question = suggested.length === 0 ? '' : `; did you mean ${suggested.join(', or ')}?`;
  return usageProblem(`unknown code ${quote(asked)}${question}; to list all: ${program} help codes`);
}

const blockOf = ({ code, topic, audience, meaning, remedy }: CodeEntry): string =>
  fields([
    ['Code', code],
    ['Topic', topic],
    ['For', audience],
    ['Meaning', wrap(meaning, TEXT_WIDTH)],
    ['To do', remedy === '' ? '' : wrap(remedy, TEXT_WIDTH)],
  ]);

const tableOf = (meaningWidth = Number.POSITIVE_INFINITY): Presentation<CodeEntry> => ({
  columns: [
    { title: 'CODE', text: ({ code }) => code },
    { title: 'MEANING', text: ({ meaning }) => shorten(meaning, meaningWidth) },
    { title: 'TO DO', text: ({ remedy }) => remedy },
    { title: 'FOR', wide: true, text: ({ audience }) => audience },
  ],
  object: (entry) => entry,
  name: ({ code }) => code,
});

import { wrap } from '../kit/wrap.ts';
import { argumentText } from './args.ts';
import type { CommandSpec, FlagSpec } from './command-spec.ts';
import { commonFlags } from './common-flags.ts';

/** Of wrapped text. Usage lines and examples may be wider. */
const WIDTH = 80;

/** `request pod TEMPLATE [flags] [-- COMMAND...]`. */
export const usageLine = ({ name, args = [], rest }: CommandSpec): string =>
  [name, ...args.map(argumentText), '[flags]', ...(rest === undefined ? [] : [`[-- ${rest}...]`])].join(' ');

export function commandHelp(command: CommandSpec, program: string): string {
  return [...ownHelp(command, program), '', ...commonHelp(), ''].join('\n');
}

/** Without the common flags, as help and the reference show it. */
export function ownHelp(command: CommandSpec, program: string): string[] {
  const { summary, details, flags = [], examples = [] } = command;
  return [
    ...indented(`${summary}.`, 0),
    ...(details === undefined ? [] : ['', ...indented(details, 0)]),
    '',
    'Usage:',
    `  ${program} ${usageLine(command)}`,
    ...(examples.length === 0 ? [] : ['', 'Examples:', ...examples.map((line) => `  ${program} ${line}`)]),
    ...(flags.length === 0 ? [] : ['', 'Flags:', ...flagLines(flags)]),
  ];
}

/** Every command with its summary. `isGroup`: they share their first word; shows usage lines. */
export function programHelp(commands: readonly CommandSpec[], program: string, isGroup = false): string {
  return [
    ...indented('Requests, approves, and ends access to Kubernetes workloads, with your own credentials.', 0),
    '',
    'Usage:',
    ...(isGroup ? commands.map(usageLine) : ['COMMAND [flags]']).map((line) => `  ${program} ${line}`),
    '',
    'Commands:',
    ...twoColumns(commands.map(({ name, summary }) => [name, summary])),
    '',
    ...commonHelp(),
    '',
    ...indented(
      'Exit codes, except those of audit verify and of commands in a pod: 0 done, 1 failed, 2 wrong command line or kubeconfig, 3 denied, 4 timed out waiting, 5 access ended, 130 interrupted.',
      0,
    ),
    `Help of one command: ${program} help COMMAND`,
    '',
  ].join('\n');
}

const commonHelp = (): string[] => ['Common flags:', ...flagLines(commonFlags)];

/** `-o, --output FORM`. */
export const flagText = ({ name, short, value }: FlagSpec): string =>
  `${short ? `-${short}, ` : ''}--${name}${value === undefined ? '' : ` ${value}`}`;

const flagLines = (flags: readonly FlagSpec[]): string[] =>
  twoColumns(flags.map((flag) => [flag.short ? flagText(flag) : `    ${flagText(flag)}`, flag.help]));

/** The second column is wrapped. */
function twoColumns(rows: readonly (readonly [name: string, text: string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length)) + 3;
  return rows.flatMap(([name, text]) => {
    const [first = '', ...more] = indented(text, width + 2);
    return [`  ${name.padEnd(width)}${first.trimStart()}`, ...more];
  });
}

/** `indent` must be less than 80. */
const indented = (text: string, indent: number): string[] =>
  wrap(text, WIDTH - indent).map((line) => ' '.repeat(indent) + line);

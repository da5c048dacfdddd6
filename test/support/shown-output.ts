import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * The outputs of commands that a page shows: the text of each `text` fence, and in each `console` fence the lines after a command.
 * Without the indentation of a list.
 */
export function outputsIn(page: string): string[] {
  const fences = [...page.matchAll(/^( *)```(?:text|console)\n([\s\S]*?)^ *```$/gm)];
  return fences
    .flatMap(([, indent, text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), '').split(/^\$ .*\n/m))
    .map((output) => output.trimEnd())
    .filter((output) => output !== '');
}

/**
 * An expression for the only output with these words that a page below docs/ shows. Times, numbers of lines, identifiers, names that
 * end with `x7k2p`, and the width of columns may differ. `...` at the end of a line stands for its rest.
 */
export function shown(page: string, words: string): RegExp {
  const path = fileURLToPath(new URL(`../../docs/${page}`, import.meta.url));
  const found = outputsIn(readFileSync(path, 'utf8')).filter((output) => output.includes(words));
  if (found.length !== 1) throw new Error(`${page} shows ${found.length} outputs with "${words}", not one`);
  const lines = (found[0] ?? '').split('\n').map((line) => {
    const expression = `${expressionOf(line)}\\r?\\n`;
    return brief.includes(line) ? `(?:${expression})?` : expression;
  });
  return new RegExp(`^${lines.join('').replace(/\\n$/, '$')}`, 'm');
}

/** States that may last so briefly that a client does not see them. */
const brief = ['waiting for the server', 'access is being opened'];

/** What differs in each run, and the expression for it. */
const varying: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/, '\\S+Z'],
  [/\b\d\d:\d\d UTC/, '\\d\\d:\\d\\d UTC'],
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/, '[0-9a-f-]{36}'],
  [/\b[0-9a-f]{24}\b/, '[0-9a-f]{24}'],
  [/[\w+/]{43}=/, '[\\w+/]{43}='],
  [/\b[a-z0-9-]+-x7k2p(?:-1)?\b/, '[\\w-]+'],
  [/\b\d+[smh]\b/, '(?:\\d+[smh])+'],
  [/(?<=lines 1 to |signed to )\d+|\d+(?= (?:in)?complete| unproven| deleted)/, '\\d+'],
  [/\.\.\.$/, '.*'],
  [/ {2,}/, ' +'],
];
const anyVarying = new RegExp(varying.map(([pattern]) => `(${pattern.source})`).join('|'));

function expressionOf(line: string): string {
  const match = anyVarying.exec(line);
  if (!match) return literal(line);
  const [text, ...groups] = match;
  const [, expression] = varying[groups.findIndex((group) => group !== undefined)] ?? [];
  return `${literal(line.slice(0, match.index))}${expression}${expressionOf(line.slice(match.index + text.length))}`;
}
const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

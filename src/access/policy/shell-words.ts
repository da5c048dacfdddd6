import { quote } from '../../kit/errors.ts';
import type { AccessCommand, Placeholder } from './access-command.ts';

/** Without its quotes, and with markers for placeholders. */
export type Word = string;
/** Markers contain NUL, which `parseAccessCommand` rejects in a command. */
export const markers: Readonly<Record<Placeholder['kind'], string>> = {
  name: '\0name',
  namespace: '\0namespace',
  label: '\0label',
  annotation: '\0annotation',
};

/** `problem` completes a sentence that begins with `accessCommand`. */
export interface CallProblem {
  readonly problem: string;
  /** Without the remedy, which depends on the rules of the template. Default: the problem. */
  readonly key?: string;
}

/** Literal in every POSIX shell and in fish, at any position in a word. */
const plain = /^[A-Za-z0-9_@%+=:,./-]$/;
/** What a shell interprets between double quotes. */
const special = /["$`\\!]/;

/** As POSIX shells and fish do. */
export function wordsOf(command: AccessCommand): { readonly words: readonly Word[] } | CallProblem {
  const words: Word[] = [];
  let word: Word | undefined;
  let openQuote: "'" | '"' | undefined;
  // Whether fish reads the next character as escaped. In single quotes, POSIX shells do not.
  let isEscaped = false;
  for (const segment of command) {
    if (segment.kind === 'value') {
      word = (word ?? '') + markers[segment.placeholder.kind];
      isEscaped = false;
      continue;
    }
    for (const { 0: character, index } of segment.text.matchAll(/./gsu)) {
      if (openQuote === undefined && character === ' ') {
        if (word !== undefined) words.push(word);
        word = undefined;
        continue;
      }
      const opens = openQuote === undefined && (character === "'" || character === '"');
      const closes = character === openQuote;
      if (closes && isEscaped) {
        return {
          problem:
            "has a backslash directly before a closing ', which fish reads as an escaped quote; " +
            'write the backslash twice, or another character after it',
        };
      }
      isEscaped = character === '\\' && !isEscaped;
      word ??= '';
      if (opens) openQuote = character;
      else if (closes) openQuote = undefined;
      else if (isPlain(character, openQuote)) word += character;
      else return { problem: characterProblem(segment.text.slice(index), openQuote, words) };
    }
  }
  if (openQuote !== undefined) return { problem: `has an unclosed ${openQuote}; close the quotes` };
  return { words: word === undefined ? words : [...words, word] };
}

function isPlain(character: string, openQuote: "'" | '"' | undefined): boolean {
  if (openQuote === "'") return true;
  return openQuote === '"' ? !special.test(character) : plain.test(character);
}

/** What word processors write. */
const lookalikes: readonly (readonly [RegExp, string])[] = [
  [/[\u2010-\u2015\u2212]/, 'which is no hyphen; write - or --'],
  [/[\u2018-\u201f\u2032\u2033]/, "which no shell reads as a quote; write '"],
  [/\p{Zs}/u, 'which no shell reads as a space; write a space'],
];
/** A value to fill in, such as `<pod>`. */
const fillIn = /^<[a-z][a-z0-9 _-]*>(?![^ ])/i;

/** Why the command must not have the first character of `rest` after these words. */
function characterProblem(rest: string, openQuote: '"' | "'" | undefined, words: readonly Word[]): string {
  const character = String.fromCodePoint(rest.codePointAt(0) ?? 0);
  const found = `has ${quote(character)} ${openQuote ? 'between double quotes' : 'outside of quotes'}`;
  const [, lookalike] = lookalikes.find(([pattern]) => pattern.test(character)) ?? [];
  return `${found}, ${lookalike ?? `which the shell of the requester may interpret; ${remedyFor(character, rest, openQuote, words)}`}`;
}

const afterShell = "-- sh -c 'COMMAND'";

function remedyFor(character: string, rest: string, openQuote: '"' | "'" | undefined, words: readonly Word[]): string {
  const isForPod = words.includes('exec') && words.includes('--');
  const expands = character === '$' || character === '`';
  const combines = '|&;<>'.includes(character);
  const [blank] = fillIn.exec(rest) ?? [];
  if (blank !== undefined) {
    return `write the value itself instead of ${blank}, or a placeholder, such as {{ .Metadata.Name }} for the pod`;
  }
  if (!isForPod && expands) return 'write the value itself, or a placeholder, such as {{ .Metadata.Namespace }}';
  const isForShell = /^-[a-z]*c$/.test(words.at(-1) ?? '');
  if (isForPod && (openQuote ? expands && !isForShell : expands || combines)) {
    return `write what a shell of the pod must interpret after sh -c, between single quotes: ${afterShell}`;
  }
  if (openQuote) {
    const [, escaped] = /^\\([$"`\\])/.exec(rest) ?? [];
    const unescaped = escaped === undefined ? '' : `, without the backslash before ${escaped}`;
    return `write single quotes instead of the double quotes${unescaped}`;
  }
  if (combines) return `the command is one call of kubectl: remove ${character} and what follows it`;
  if (!isForPod && '{}'.includes(character)) return 'placeholders have two braces, such as {{ .Metadata.Name }}';
  const quoted = `put ${isForPod ? 'text for the program in the pod' : 'the value'} between single quotes`;
  if (character === '#') return `remove the comment, or ${quoted}`;
  if (isForPod && '*?[]~{}()\\'.includes(character)) {
    return `${quoted}; what a shell of the pod must interpret goes after sh -c: ${afterShell}`;
  }
  if (character === '\\') return `remove it, or ${quoted}`;
  return `outside of quotes only ASCII letters, digits, and _ @ % + = : , . / - are allowed: ${quoted}`;
}

export const shown = (word: Word): string => (word === '' ? 'an empty word' : quote(word.replaceAll('\0', 'the ')));

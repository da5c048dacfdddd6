import { isPlainWord, shellWord } from '../../kit/shell-word.ts';
import type { Violation } from './policy.ts';

export interface CommandSubject {
  /** In messages. Default: `pod` and its name. */
  readonly title?: string;
  /** Where a user can add a label or annotation of the pod. Undefined for a pod of `podSpec`. */
  readonly metadataFrom?: 'mutationConfig' | `the Pod template of ${string}` | undefined;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export type Placeholder =
  | { readonly kind: 'name' }
  | { readonly kind: 'namespace' }
  | { readonly kind: 'label' | 'annotation'; readonly key: string };

type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'value'; readonly placeholder: Placeholder; readonly isQuoted: boolean };

export type AccessCommand = readonly Segment[];

const ALLOWED_PLACEHOLDERS = [
  '{{ .Metadata.Name }}',
  '{{ .Metadata.Namespace }}',
  '{{ index .Metadata.Labels "key" }}',
  '{{ index .Metadata.Annotations "key" }}',
] as const;

/** UTF-16 units before and after rendering, so that it fits in the message of a condition. */
const MAX_LENGTH = 4096;
const FIELD = 'spec.accessConfig.accessCommand';
const PLACEHOLDER =
  /\{\{ *(?:\.Metadata\.(Name|Namespace)|index +\.Metadata\.(Labels|Annotations) +"([^"\\{}]{1,317})") *\}\}/y;
/** What alters a terminal: control and format characters, line separators, lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** After `{{`, only ALLOWED_PLACEHOLDERS are valid. Code `InvalidAccessCommand`. */
export function parseAccessCommand(
  source: string,
): { readonly command: AccessCommand } | { readonly violation: Violation } {
  const text = source.trim();
  if (text === '') return refuse('is empty; write a command, or omit the field to get the default, kubectl exec');
  if (text.length > MAX_LENGTH)
    return refuse(`has ${text.length} characters; at most ${MAX_LENGTH} are allowed: shorten it`);
  if (UNPRINTABLE.test(text)) {
    return refuse(
      `contains ${nameOfCharacter(text)}; line breaks, control characters, and invisible characters are not allowed: remove it`,
    );
  }
  const segments: Segment[] = [];
  let openQuote: OpenQuote;
  let position = 0;
  while (position < text.length) {
    const opening = text.indexOf('{{', position);
    const literal = text.slice(position, opening < 0 ? text.length : opening);
    if (literal !== '') {
      segments.push({ kind: 'literal', text: literal });
      openQuote = openQuoteAfter(literal, openQuote);
    }
    if (opening < 0) break;
    PLACEHOLDER.lastIndex = opening;
    const match = PLACEHOLDER.exec(text);
    if (!match) return refuse(`contains ${JSON.stringify(excerpt(text, opening))}; ${allowed()}`);
    segments.push({ kind: 'value', placeholder: placeholderOf(match), isQuoted: openQuote !== undefined });
    position = PLACEHOLDER.lastIndex;
  }
  return { command: segments };
}

/**
 * Quotes values for POSIX shells and fish; none may be missing or change the command. `wordsOf`
 * must accept the command first: a backslash, `$`, or backquote could cancel the quoting.
 */
export function renderAccessCommand(
  command: AccessCommand,
  pod: CommandSubject,
): { readonly text: string } | { readonly violation: Violation } {
  const title = pod.title ?? `pod ${pod.name}`;
  let text = '';
  for (const segment of command) {
    if (segment.kind === 'literal') {
      text += segment.text;
      continue;
    }
    const description = describe(segment.placeholder);
    const value = valueFor(segment.placeholder, pod);
    if (value === undefined) {
      return refuse(
        `names ${description}, which ${title} does not have; ${remedyFor(segment.placeholder, pod, 'add')}`,
      );
    }
    if (value === '') {
      return refuse(`names ${description}, which is empty on ${title}; ${remedyFor(segment.placeholder, pod, 'set')}`);
    }
    if (UNPRINTABLE.test(value)) {
      return refuse(
        `names ${description}, whose value on ${title} contains ${nameOfCharacter(value)}; remove the placeholder`,
      );
    }
    if (value.startsWith('-')) {
      return refuse(
        `names ${description}, whose value on ${title} begins with "-", as an option does; remove the placeholder`,
      );
    }
    const quoted = quoteForShell(value, segment.isQuoted);
    if (quoted === undefined) {
      return refuse(
        `names ${description} inside quotes, where a shell can interpret its value on ${title}; write the placeholder as a word of its own`,
      );
    }
    text += quoted;
    if (text.length > MAX_LENGTH) break;
  }
  if (text.length > MAX_LENGTH)
    return refuse(`is longer than ${MAX_LENGTH} characters when rendered for ${title}; shorten it`);
  return { text };
}

function remedyFor({ kind }: Placeholder, { metadataFrom }: CommandSubject, verb: 'add' | 'set'): string {
  const remove = 'remove the placeholder';
  if (metadataFrom === undefined) return remove;
  const field = kind === 'label' ? 'podLabels' : 'podAnnotations';
  const where = metadataFrom === 'mutationConfig' ? field : metadataFrom;
  return `${verb} the ${kind} ${verb === 'add' ? 'to' : 'in'} ${where}, or ${remove}`;
}

function placeholderOf(match: RegExpExecArray): Placeholder {
  if (match[1] !== undefined) return { kind: match[1] === 'Name' ? 'name' : 'namespace' };
  return { kind: match[2] === 'Labels' ? 'label' : 'annotation', key: match[3] ?? '' };
}

function valueFor(placeholder: Placeholder, pod: CommandSubject): string | undefined {
  if (placeholder.kind === 'name') return pod.name;
  if (placeholder.kind === 'namespace') return pod.namespace;
  const map = placeholder.kind === 'label' ? pod.labels : pod.annotations;
  const value: unknown = Object.hasOwn(map, placeholder.key) ? map[placeholder.key] : undefined;
  return typeof value === 'string' ? value : undefined;
}

function describe(placeholder: Placeholder): string {
  if (placeholder.kind === 'name' || placeholder.kind === 'namespace') return `the ${placeholder.kind}`;
  return `${placeholder.kind} ${JSON.stringify(placeholder.key)}`;
}

const allowed = (): string => `only these placeholders are allowed: ${ALLOWED_PLACEHOLDERS.join(', ')}`;

/** Up to its closing braces, at most 60 characters. */
function excerpt(text: string, opening: number): string {
  const closing = text.indexOf('}}', opening);
  const end = closing < 0 ? text.length : closing + 2;
  return end - opening > 60 ? `${text.slice(opening, opening + 57)}...` : text.slice(opening, end);
}

function nameOfCharacter(text: string): string {
  const code = UNPRINTABLE.exec(text)?.[0].codePointAt(0) ?? 0;
  return `the character U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** `why` completes a sentence that begins with `accessCommand`; `key` as in Violation. */
export const refuse = (why: string, key?: string): { readonly violation: Violation } => ({
  violation: {
    code: 'InvalidAccessCommand',
    message: `accessCommand ${why}`,
    field: FIELD,
    status: 422,
    ...(key === undefined ? {} : { key }),
  },
});

type OpenQuote = "'" | '"' | undefined;

/** If `open` is open before `text`. */
function openQuoteAfter(text: string, open: OpenQuote): OpenQuote {
  let quote = open;
  for (const character of text) {
    if (character === quote) quote = undefined;
    else if (quote === undefined && (character === "'" || character === '"')) quote = character;
  }
  return quote;
}

/** Undefined if the value needs quotes and is already between quotes. */
function quoteForShell(value: string, isQuoted: boolean): string | undefined {
  return isQuoted && !isPlainWord(value) ? undefined : shellWord(value);
}

// The command that requesters paste into their shells, once access is open:
//
//   source ── parse ──► literals and placeholders ── render, with the values of a pod ──► text
//
// A literal means the same to every POSIX shell and to fish, and every value is quoted for them. So
// the text is one call of kubectl or oc, whatever the name, labels, and annotations of the pod are.
// The call enters the granted pod, and no option sends the requester's credentials elsewhere.
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
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

interface Placeholder {
  readonly kind: 'name' | 'namespace' | 'label' | 'annotation';
  /** Of the label or annotation. */
  readonly key: string;
  /** Between quotes of the command. */
  readonly isQuoted: boolean;
}

/** Strings are literals. */
type Command = readonly (string | Placeholder)[];
type Refused = { readonly violation: Violation };

/** UTF-16 units before and after rendering, so that it fits in the message of a condition. */
const MAX_LENGTH = 4096;
const FIELD = 'spec.accessConfig.accessCommand';
const PLACEHOLDER =
  /(?<!\{)\{\{ *(?:\.Metadata\.(Name|Namespace)|index +\.Metadata\.(Labels|Annotations) +"([^"\\{}]{1,317})") *\}\}/g;
const ALLOWED_PLACEHOLDERS =
  '{{ .Metadata.Name }}, {{ .Metadata.Namespace }}, {{ index .Metadata.Labels "key" }}, {{ index .Metadata.Annotations "key" }}';
/** What alters a terminal: control and format characters, line separators, lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
/** Mean the same to POSIX shells, zsh (which expands `=ls`), and fish (`%self`, and `\'` in quotes). */
const SHELL_WORDS = /^(?:[\w@+:,./ \0-]|(?<=[\w@%+=:,./\0-])[=%]|"[^"$`\\!]*"|'(?:[^'\\]|\\[^'])*')*/;

/** Stands for the name of the pod in literals, which contain no control characters. */
const POD = '\0';
const WORD = /(?:[^ "']|"[^"]*"|'(?:[^'\\]|\\[^'])*')+/g;

const VERBS = ['exec', 'attach', 'logs', 'port-forward'];
/** Other options read or write files, call other servers, or act as other users. */
const VALUE_OPTIONS = [
  ...['-n', '--namespace', '-c', '--container', '--context', '--tail', '--since'],
  ...['--request-timeout', '--pod-running-timeout'],
];
const STREAM_FLAGS = ['-i', '-t', '-it', '-ti', '--stdin', '--tty', '-q', '--quiet'];
/** `-f` of other verbs names a file or a URL. */
const LOG_FLAGS = ['-f', '--follow', '-p', '--previous'];

/** Code `InvalidAccessCommand`, also for kubectl exec, the default, in a template without exec. */
export function accessCommandViolation({
  accessCommand,
  exec,
}: Pick<AccessConfig, 'accessCommand' | 'exec'>): Violation | undefined {
  const parsed = parse(accessCommand);
  if ('violation' in parsed) return parsed.violation;
  if (exec !== false || !/^\s*\S+ +exec /.test(accessCommand)) return undefined;
  return refuse(
    'is kubectl exec, the default, and exec is false; write what the rules allow, such as kubectl logs -f -n {{ .Metadata.Namespace }} {{ .Metadata.Name }}',
  ).violation;
}

/** For one pod. Code `InvalidAccessCommand` also if the command does not fit the pod. */
export function renderAccessCommand(source: string, pod: CommandSubject): { readonly text: string } | Refused {
  const parsed = parse(source);
  if ('violation' in parsed) return parsed;
  const title = pod.title ?? `pod ${pod.name}`;
  let text = '';
  for (const part of parsed.command) {
    if (typeof part === 'string') {
      text += part;
      continue;
    }
    const value = valueFor(part, pod);
    const problem = problemOf(value, part, pod, title);
    if (problem !== undefined) return refuse(`names ${describe(part)}${problem}`);
    text += shellWord(value ?? '');
    if (text.length > MAX_LENGTH) break;
  }
  return text.length > MAX_LENGTH
    ? refuse(`is longer than ${MAX_LENGTH} characters when rendered for ${title}; shorten it`)
    : { text };
}

function parse(source: string): { readonly command: Command } | Refused {
  const text = source.trim();
  if (text === '') return refuse('is empty; write a command, or omit the field to get the default, kubectl exec');
  if (text.length > MAX_LENGTH)
    return refuse(`has ${text.length} characters; at most ${MAX_LENGTH} are allowed: shorten it`);
  if (UNPRINTABLE.test(text)) {
    const problem = 'line breaks, control characters, and invisible characters are not allowed: remove it';
    return refuse(`contains ${nameOfCharacter(text)}; ${problem}`);
  }
  const command: (string | Placeholder)[] = [];
  /** With one character for each placeholder. */
  let literals = '';
  let end = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    const literal = text.slice(end, match.index);
    literals += literal;
    const placeholder = placeholderOf(match, wordsLength(literals) < literals.length);
    command.push(literal, placeholder);
    literals += placeholder.kind === 'name' ? POD : 'x';
    end = match.index + match[0].length;
  }
  command.push(text.slice(end));
  const problem = literalProblem(literals + text.slice(end));
  return problem === undefined ? { command } : refuse(problem);
}

/** How much of `text` is whole words. A quote that does not close, for example, ends them. */
const wordsLength = (text: string): number => SHELL_WORDS.exec(text)?.[0].length ?? 0;

/** Completes a sentence that begins with `accessCommand`, as `problemOf` does. */
function literalProblem(text: string): string | undefined {
  const [unknown] = /\{\{.*?\}\}|\{\{.*/.exec(text) ?? [];
  if (unknown !== undefined) {
    const excerpt = unknown.length > 60 ? `${unknown.slice(0, 57)}...` : unknown;
    return `contains ${JSON.stringify(excerpt)}; only these placeholders are allowed: ${ALLOWED_PLACEHOLDERS}`;
  }
  const code = text.codePointAt(wordsLength(text));
  if (code !== undefined) return characterProblem(String.fromCodePoint(code));
  return callProblem(text.match(WORD) ?? []);
}

/** Of the words as written. Those after `--` are for the program in the pod. */
function callProblem(words: readonly string[]): string | undefined {
  const end = words.indexOf('--');
  const [program = '', verb = '', ...rest] = end < 0 ? words : words.slice(0, end);
  if (program !== 'kubectl' && program !== 'oc') return `begins with ${shown(program)}; write kubectl or oc`;
  if (!VERBS.includes(verb)) return `has ${shown(verb)} after ${program}; allowed are ${VERBS.join(', ')}`;
  const flags = verb === 'logs' ? LOG_FLAGS : STREAM_FLAGS;
  const operands: string[] = [];
  for (let index = 0; index < rest.length; index++) {
    const word = rest[index] ?? '';
    if (!withoutQuotes(word).startsWith('-')) {
      operands.push(word);
      continue;
    }
    const [name = ''] = word.split('=', 1);
    if (VALUE_OPTIONS.includes(name)) {
      // kubectl would read -- as the value, and options after it.
      if (name === word && ++index >= rest.length) return `has the option ${name} without a value; write one`;
    } else if (!flags.includes(name)) {
      return `has the option ${shown(name)}; allowed for ${verb} are ${[...VALUE_OPTIONS, ...flags].join(' ')}`;
    }
  }
  const [target] = operands;
  if (target === undefined) return 'does not name the granted pod; write {{ .Metadata.Name }}';
  if (withoutQuotes(target).replace(/^(?:po|pod|pods)\//, '') === POD) return undefined;
  return `has the target ${shown(target)}; write {{ .Metadata.Name }} instead, which is the granted pod`;
}

const withoutQuotes = (word: string): string => word.replace(/["']/g, '');
const shown = (word: string): string => quote(word.replaceAll(POD, '{{ .Metadata.Name }}'), 60);

function characterProblem(character: string): string {
  if (character === '"') {
    return 'has a double quote that does not close, or $, `, \\, or ! after it; close it, or write single quotes';
  }
  if (character === "'") {
    return 'has a single quote that does not close, or \\ directly before it closes; close it, or write the \\ twice';
  }
  return `has ${quote(character)} outside of quotes, which the shell of the requester may interpret; remove it, or put the text for the program in the pod between single quotes`;
}

function problemOf(
  value: string | undefined,
  { kind, isQuoted }: Placeholder,
  { metadataFrom }: CommandSubject,
  title: string,
): string | undefined {
  const remove = 'remove the placeholder';
  const field = kind === 'label' ? 'podLabels' : 'podAnnotations';
  const where = metadataFrom === 'mutationConfig' ? field : metadataFrom;
  const remedy = (verb: string): string => (where === undefined ? remove : `${verb} ${where}, or ${remove}`);
  if (value === undefined) return `, which ${title} does not have; ${remedy(`add the ${kind} to`)}`;
  if (value === '') return `, which is empty on ${title}; ${remedy(`set the ${kind} in`)}`;
  if (UNPRINTABLE.test(value)) return `, whose value on ${title} contains ${nameOfCharacter(value)}; ${remove}`;
  if (value.startsWith('-')) return `, whose value on ${title} begins with "-", as an option does; ${remove}`;
  if (!isQuoted || isPlainWord(value)) return undefined;
  return ` inside quotes, where a shell can interpret its value on ${title}; write the placeholder as a word of its own`;
}

function placeholderOf([, own, map, key = '']: RegExpExecArray, isQuoted: boolean): Placeholder {
  if (own !== undefined) return { kind: own === 'Name' ? 'name' : 'namespace', key, isQuoted };
  return { kind: map === 'Labels' ? 'label' : 'annotation', key, isQuoted };
}

function valueFor({ kind, key }: Placeholder, pod: CommandSubject): string | undefined {
  if (kind === 'name' || kind === 'namespace') return pod[kind];
  const map = kind === 'label' ? pod.labels : pod.annotations;
  const value: unknown = Object.hasOwn(map, key) ? map[key] : undefined;
  return typeof value === 'string' ? value : undefined;
}

const describe = ({ kind, key }: Placeholder): string =>
  kind === 'name' || kind === 'namespace' ? `the ${kind}` : `${kind} ${JSON.stringify(key)}`;

function nameOfCharacter(text: string): string {
  const code = UNPRINTABLE.exec(text)?.[0].codePointAt(0) ?? 0;
  return `the character U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** `why` completes a sentence that begins with `accessCommand`. */
const refuse = (why: string): Refused => ({
  violation: { code: 'InvalidAccessCommand', message: `accessCommand ${why}`, field: FIELD, status: 422 },
});

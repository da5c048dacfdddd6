import type { TemplateRule } from '../../api/access/grant.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import { describeRight, uncovered } from '../../rbac/rule-cover.ts';
import {
  type AccessCommand,
  type CommandSubject,
  type Placeholder,
  parseAccessCommand,
  refuse,
  renderAccessCommand,
} from './access-command.ts';
import { rulesOf } from './granted-rules.ts';
import type { Violation } from './policy.ts';

type Refused = { readonly violation: Violation };

/**
 * Parses the access command of a template. Requesters paste it into their own shells, so it must be kubectl or oc to the granted pod, and
 * must contain nothing else that a shell executes. It checks the name of the pod, but neither its namespace nor `--context`. Everything
 * after `--` runs in the pod. Code `InvalidAccessCommand`.
 */
export function readAccessCommand(source: string): { readonly command: AccessCommand; readonly verb: Verb } | Refused {
  const parsed = parseAccessCommand(source);
  if ('violation' in parsed) return parsed;
  const split = wordsOf(parsed.command);
  const read = 'problem' in split ? split : verbOf(split.words);
  return 'problem' in read ? refuse(read.problem) : { ...parsed, ...read };
}

/**
 * Why the access command of a template is invalid; undefined if it is valid. If the template excludes exec, its rules must allow the
 * command. Code `InvalidAccessCommand`.
 */
export function accessCommandViolation(config: AccessConfig): Violation | undefined {
  const read = readAccessCommand(config.accessCommand);
  if ('violation' in read) return read.violation;
  return config.exec === false ? ungrantedCommand(config, read.verb) : undefined;
}

function ungrantedCommand(config: AccessConfig, verb: Verb): Violation | undefined {
  const [needed] = uncovered(rulesOf(config), [ruleFor[verb]]);
  if (!needed) return undefined;
  const remedy =
    verb === 'exec'
      ? 'exec: false excludes exec, also as the default command: write a command that the rules allow'
      : 'add it to spec.accessConfig.rules, or write a command that the rules allow';
  return refuse(
    `is kubectl ${verb}, which needs ${describeRight(needed)}, and the template does not hand that out; ${remedy}, for example: ${logsExample}`,
  ).violation;
}

/** The command that the requester can type, for one pod. Code `InvalidAccessCommand` if the command is invalid, or does not fit the pod. */
export function renderAccessMessage(accessCommand: string, pod: CommandSubject): { readonly text: string } | Refused {
  const read = readAccessCommand(accessCommand);
  return 'violation' in read ? read : renderAccessCommand(read.command, pod);
}

/** A shell word without its quotes. Each placeholder is replaced by its marker. */
type Word = string;
/** Markers contain NUL, which no template can contain. */
const markers: Readonly<Record<Placeholder['kind'], string>> = {
  name: '\0name',
  namespace: '\0namespace',
  label: '\0label',
  annotation: '\0annotation',
};

/** Characters that are literal in every POSIX shell, at any position in a word. */
const plain = /^[A-Za-z0-9_@%+=:,./-]$/;
/** Characters that a shell interprets between double quotes. */
const special = /["$`\\!]/;

/** Splits the command into words, as a shell does. */
function wordsOf(command: AccessCommand): { readonly words: readonly Word[] } | { readonly problem: string } {
  const words: Word[] = [];
  let word: Word | undefined;
  let openQuote: "'" | '"' | undefined;
  for (const segment of command) {
    if (segment.kind === 'value') {
      word = (word ?? '') + markers[segment.placeholder.kind];
      continue;
    }
    for (const character of segment.text) {
      if (openQuote === undefined && character === ' ') {
        if (word !== undefined) words.push(word);
        word = undefined;
        continue;
      }
      const opens = openQuote === undefined && (character === "'" || character === '"');
      const closes = character === openQuote;
      word ??= '';
      if (opens) openQuote = character;
      else if (closes) openQuote = undefined;
      else if (isPlain(character, openQuote)) word += character;
      else {
        const where = openQuote ? 'between double quotes' : 'outside of quotes';
        return {
          problem:
            `has ${quote(character)} ${where}, which the requester’s own shell interprets; outside of quotes only letters, digits, and ` +
            '_ @ % + = : , . / - are allowed: put text for the pod’s shell between single quotes',
        };
      }
    }
  }
  if (openQuote !== undefined) return { problem: `has an unclosed ${openQuote}; close the quotes` };
  return { words: word === undefined ? words : [...words, word] };
}

function isPlain(character: string, openQuote: "'" | '"' | undefined): boolean {
  if (openQuote === "'") return true;
  return openQuote === '"' ? !special.test(character) : plain.test(character);
}

const clients: readonly Word[] = ['kubectl', 'oc'];
const verbs = ['exec', 'attach', 'logs', 'port-forward'] as const;
type Verb = (typeof verbs)[number];
const onPods = (subresource: string, verb: string): TemplateRule => ({
  apiGroups: [''],
  resources: [`pods/${subresource}`],
  verbs: [verb],
});
/** The rule that each verb needs. */
const ruleFor: Readonly<Record<Verb, TemplateRule>> = {
  exec: onPods('exec', 'create'),
  attach: onPods('attach', 'create'),
  logs: onPods('log', 'get'),
  'port-forward': onPods('portforward', 'create'),
};
/**
 * The allowed options, and whether each takes a value. They select the context, the namespace, and the container, or control the connection
 * and the output. Other options can read or write files, or contact an address that the requester's kubeconfig does not have.
 */
const options: ReadonlyMap<Word, 'value' | 'none'> = new Map([
  ...['-n', '--namespace', '-c', '--container', '--context', '--request-timeout', '--pod-running-timeout'].map(
    (name) => [name, 'value'] as const,
  ),
  ...['--tail', '--since'].map((name) => [name, 'value'] as const),
  ...['-i', '-t', '-it', '-ti', '--stdin', '--tty', '-q', '--quiet'].map((name) => [name, 'none'] as const),
]);
/** Options that are allowed only for `logs`. For `exec` and others, -f names a file or URL that selects the target. */
const optionsOfLogs: readonly Word[] = ['-f', '--follow', '-p', '--previous'];

/** A command for templates without exec. */
export const logsExample = 'kubectl logs -f -n {{ .Metadata.Namespace }} {{ .Metadata.Name }}';
const example = 'for example: kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh';

function verbOf([client = '', ...rest]: readonly Word[]): { readonly verb: Verb } | { readonly problem: string } {
  if (!clients.includes(client)) {
    return { problem: `begins with ${shown(client)}; allowed are ${clients.join(' and ')}, ${example}` };
  }
  const end = rest.indexOf('--');
  const parsed = operandsOf(end < 0 ? rest : rest.slice(0, end));
  if ('problem' in parsed) return parsed;
  const [word = '', target = ''] = parsed.operands;
  const verb = verbs.find((allowed) => allowed === word);
  if (!verb) return { problem: `has ${client} ${shown(word)}; allowed are ${verbs.join(', ')}, ${example}` };
  if (target.replace(/^(po|pod|pods)\//, '') === markers.name) return { verb };
  return {
    problem: `has the target ${shown(target)}; write {{ .Metadata.Name }} instead, which is the granted pod, ${example}`,
  };
}

/** The words that are not options; the first is the verb. */
function operandsOf(words: readonly Word[]): { readonly operands: readonly Word[] } | { readonly problem: string } {
  const operands: Word[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (!word.startsWith('-')) {
      operands.push(word);
      continue;
    }
    const [name = ''] = word.split('=', 1);
    const argument = operands[0] === 'logs' && optionsOfLogs.includes(name) ? 'none' : options.get(name);
    if (argument === undefined) {
      const allowed = [...options.keys()].join(' ');
      return {
        problem: `has the option ${shown(name)}; allowed before -- are ${allowed}, and to logs ${optionsOfLogs.join(' ')}`,
      };
    }
    if (argument === 'value' && !word.includes('=')) index += 1;
  }
  return { operands };
}

const shown = (word: Word): string => (word === '' ? 'nothing' : quote(word.replaceAll('\0', 'the ')));

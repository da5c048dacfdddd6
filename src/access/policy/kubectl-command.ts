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

/** An access command that is a call of kubectl or oc to the granted pod. */
interface KubectlCall {
  readonly verb: Verb;
  /** The value of `-n`. Absent if the requester's kubeconfig chooses the namespace. */
  readonly namespace?: Word;
}

/**
 * Parses the access command of a template. Requesters paste it into their own shells, so it must be kubectl or oc to the granted pod, and
 * must contain nothing else that a shell executes. It checks the name of the pod, but neither its namespace nor `--context`. Everything
 * after `--` runs in the pod. Code `InvalidAccessCommand`.
 */
export function readAccessCommand(source: string): ({ readonly command: AccessCommand } & KubectlCall) | Refused {
  const parsed = parseAccessCommand(source);
  if ('violation' in parsed) return parsed;
  const split = wordsOf(parsed.command);
  const read = 'problem' in split ? split : callOf(split.words);
  return 'problem' in read ? refuse(read.problem) : { ...parsed, ...read };
}

/**
 * Why the access command of a template in `namespace` is invalid; undefined if it is valid. It must not name another namespace. If the
 * template excludes exec, its rules must allow the command. Code `InvalidAccessCommand`.
 */
export function accessCommandViolation(config: AccessConfig, namespace: string): Violation | undefined {
  const read = readAccessCommand(config.accessCommand);
  if ('violation' in read) return read.violation;
  const foreign = namespaceViolation(read.namespace, namespace);
  if (foreign) return foreign;
  const ungranted = config.exec === false ? ungrantedCommand(config, read.verb) : undefined;
  return ungranted === undefined ? undefined : refuse(ungranted).violation;
}

/**
 * What a valid access command needs although a template with exec does not hand it out, with the remedy; undefined if nothing. Requesters
 * may hold it already, so this is no violation.
 */
export function accessCommandNote(config: AccessConfig): string | undefined {
  const read = readAccessCommand(config.accessCommand);
  if ('violation' in read || config.exec === false) return undefined;
  const ungranted = ungrantedCommand(config, read.verb);
  return (
    ungranted && `spec.accessConfig.accessCommand ${ungranted}; it fails for requesters who do not hold this already`
  );
}

function namespaceViolation(word: Word | undefined, namespace: string): Violation | undefined {
  if (word === undefined || word === '' || word === markers.namespace || word === namespace) return undefined;
  return refuse(
    `has the namespace ${shown(word)}, and the granted pod is in the namespace of the template, ${quote(namespace)}; write -n {{ .Metadata.Namespace }}`,
  ).violation;
}

/** The right that the command needs and the template does not hand out, with the remedy; undefined if there is none. */
function ungrantedCommand(config: AccessConfig, verb: Verb): string | undefined {
  const [needed] = uncovered(rulesOf(config), [ruleFor[verb]]);
  if (!needed) return undefined;
  const possible = commandExample(config);
  const ways = [
    // A template without exec must not have a rule for it.
    ...(verb === 'exec' ? [] : [`add ${flowOf(ruleFor[verb])} to spec.accessConfig.rules`]),
    ...(possible === undefined ? [] : [`write a command that the template allows, for example: ${possible}`]),
  ];
  const [first = `add ${flowOf(ruleFor.logs)} to spec.accessConfig.rules, and write: ${examples.logs}`] = ways;
  const remedy = [first, ...ways.slice(1)].join(', or ');
  const why = verb === 'exec' ? 'exec: false excludes exec, also as the default command: ' : '';
  return `is kubectl ${verb}, which needs ${describeRight(needed)}, and the template does not hand that out; ${why}${remedy}`;
}

/** An access command that the template allows; undefined if it allows none. */
export const commandExample = (config: Pick<AccessConfig, 'exec' | 'rules'>): string | undefined => {
  const verb = verbs.find((candidate) => uncovered(rulesOf(config), [ruleFor[candidate]]).length === 0);
  return verb && examples[verb];
};

/** A rule as people write it in YAML. */
const flowOf = ({ resources, verbs: names }: TemplateRule): string =>
  `{apiGroups: [''], resources: [${resources.join(', ')}], verbs: [${names.join(', ')}]}`;

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

const target = '-n {{ .Metadata.Namespace }} {{ .Metadata.Name }}';
const examples: Readonly<Record<Verb, string>> = {
  exec: `kubectl exec -ti ${target} -- /bin/sh`,
  attach: `kubectl attach -ti ${target}`,
  logs: `kubectl logs -f ${target}`,
  'port-forward': `kubectl port-forward ${target} 8080:8080`,
};
const example = `for example: ${examples.exec}`;

function callOf([client = '', ...rest]: readonly Word[]): KubectlCall | { readonly problem: string } {
  if (!clients.includes(client)) {
    return { problem: `begins with ${shown(client)}; allowed are ${clients.join(' and ')}, ${example}` };
  }
  const end = rest.indexOf('--');
  const parsed = operandsOf(end < 0 ? rest : rest.slice(0, end));
  if ('problem' in parsed) return parsed;
  const [word = '', pod = ''] = parsed.operands;
  const verb = verbs.find((allowed) => allowed === word);
  if (!verb) return { problem: `has ${client} ${shown(word)}; allowed are ${verbs.join(', ')}, ${example}` };
  if (pod.replace(/^(po|pod|pods)\//, '') === markers.name) {
    return { verb, ...(parsed.namespace === undefined ? {} : { namespace: parsed.namespace }) };
  }
  return {
    problem: `has the target ${shown(pod)}; write {{ .Metadata.Name }} instead, which is the granted pod, ${example}`,
  };
}

/** The words that are not options, of which the first is the verb, and the last value of `-n`, which is the one that kubectl uses. */
function operandsOf(
  words: readonly Word[],
): { readonly operands: readonly Word[]; readonly namespace: Word | undefined } | { readonly problem: string } {
  const operands: Word[] = [];
  let namespace: Word | undefined;
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
    if (name === '-n' || name === '--namespace') {
      namespace = word.includes('=') ? word.slice(name.length + 1) : words[index];
    }
  }
  return { operands, namespace };
}

const shown = (word: Word): string => (word === '' ? 'nothing' : quote(word.replaceAll('\0', 'the ')));

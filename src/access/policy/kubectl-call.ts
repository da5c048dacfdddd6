import { quote } from '../../kit/errors.ts';
import { parseGoDuration } from '../../kit/go-duration.ts';
import { type CallProblem, markers, shown, type Word } from './shell-words.ts';

/** An access command that is a call of kubectl or oc to the granted pod. */
export interface KubectlCall {
  readonly verb: Verb;
  /** `-n`. Absent or empty if the requester's kubeconfig chooses the namespace. */
  readonly namespace?: Word | undefined;
  /** Absent if kubectl chooses it. */
  readonly container?: Word | undefined;
  /** `exec` without `--`, which kubectl accepts only up to version 1.30. */
  readonly lacksSeparator: boolean;
  /** Named container ports of `port-forward`, without port numbers. */
  readonly portNames: readonly Word[];
}

/** What the message about a problem can suggest instead. */
export interface Offer {
  /** Those that the template does not deny. */
  readonly verbs: readonly Verb[];
  /** A command that the template hands out, of this verb if possible. */
  example(verb?: Verb): string | undefined;
  /** A command of this verb, if the template hands it out. */
  exampleOf(verb: Verb): string | undefined;
}

const clients: readonly Word[] = ['kubectl', 'oc'];
export const verbs = ['exec', 'attach', 'logs', 'port-forward'] as const;
export type Verb = (typeof verbs)[number];

/** `flag`: a value only after `=`. `lines`: -1 is all. `timeout`: a duration or whole seconds. */
type OptionKind = 'flag' | 'text' | 'duration' | 'lines' | 'timeout';
const listed = (kind: OptionKind, ...names: Word[]): readonly (readonly [Word, OptionKind])[] =>
  names.map((name) => [name, kind]);
const common = [
  ...listed('text', '-n', '--namespace', '--context'),
  ...listed('timeout', '--request-timeout'),
  ...listed('duration', '--pod-running-timeout'),
];
const ofContainer = listed('text', '-c', '--container');
const ofStreams = listed('flag', '-i', '-t', '-it', '-ti', '--stdin', '--tty', '-q', '--quiet');
const ofLines = [...listed('lines', '--tail'), ...listed('duration', '--since')];
const ofLogs = listed('flag', '-f', '--follow', '-p', '--previous');
/** Some other options of kubectl read or write files, or contact foreign addresses. */
const optionsOf: Readonly<Record<Verb, ReadonlyMap<Word, OptionKind>>> = {
  exec: new Map([...common, ...ofContainer, ...ofStreams]),
  attach: new Map([...common, ...ofContainer, ...ofStreams]),
  logs: new Map([...common, ...ofContainer, ...ofLines, ...ofLogs]),
  'port-forward': new Map(common),
};
/** Without `ofLogs`: before the verb, `-f` may be that of `exec`, which names a file or URL. */
const earlyOptions = new Map([...common, ...ofContainer, ...ofStreams, ...ofLines]);

export function callOf([client = '', ...rest]: readonly Word[], offer: Offer): KubectlCall | CallProblem {
  // `key` omits the remedy and the example, which an edit of `accessConfig.rules` changes.
  const withExample = (found: string, remedy: string, example: string | undefined, key = found): CallProblem => {
    const problem = `${found}; ${remedy}`;
    return { problem: example === undefined ? problem : `${problem}, for example: ${example}`, key };
  };
  const notOffered = (word: Word, key?: string): CallProblem =>
    withExample(`has ${client} ${shown(word)}`, `allowed are ${offer.verbs.join(', ')}`, offer.example(), key);
  /** Suggests another verb if the template denies this one. */
  const ofVerb = (used: Verb, found: string, remedy: string, example = offer.exampleOf(used)): CallProblem =>
    offer.verbs.includes(used) ? withExample(found, remedy, example) : notOffered(used, found);
  if (!clients.includes(client)) {
    return withExample(`begins with ${shown(client)}`, `allowed are ${clients.join(' and ')}`, offer.example());
  }
  const end = rest.indexOf('--');
  const { operands, options, verb } = argumentsOf(end < 0 ? rest : rest.slice(0, end));
  const after = end < 0 ? [] : rest.slice(end + 1);
  const allowed = verb ? optionsOf[verb] : earlyOptions;
  const unknown = options.find(({ name }) => !allowed.has(name));
  if (operands.length > 0 && !verb) return notOffered(operands[0] ?? '');
  if (unknown) {
    const names = [...allowed.keys()].join(' ');
    const found = `has the option ${shown(unknown.name)}`;
    return verb
      ? ofVerb(verb, found, `allowed for ${verb} are ${names}`)
      : withExample(found, `allowed are ${names}`, offer.example());
  }
  if (!verb) {
    return withExample(`has ${client} without a verb`, `allowed are ${offer.verbs.join(', ')}`, offer.example());
  }
  const [, pod, ...others] = operands;
  if (pod === undefined) {
    const remedy = 'write {{ .Metadata.Name }}, which is the granted pod';
    return ofVerb(verb, `is ${client} ${verb} without a target`, remedy, offer.example(verb));
  }
  if (pod.replace(/^(po|pod|pods)\//, '') !== markers.name) {
    const remedy = 'write {{ .Metadata.Name }} instead, which is the granted pod';
    return ofVerb(verb, `has the target ${shown(pod)}`, remedy, offer.example(verb));
  }
  const invalid = options.flatMap(({ name, value }) =>
    valueProblem(name, value, allowed.get(name)).map((why) => ({ name, why })),
  );
  if (invalid[0]) return { problem: `has the option ${shown(invalid[0].name)} ${invalid[0].why}` };
  const container = options.findLast(({ name }) => name === '-c' || name === '--container');
  const afterPod = [...others, ...after];
  const extra = extraWord(verb, afterPod, container);
  if (extra !== undefined) return { problem: extra };
  if (verb === 'exec' && !after[0] && (end >= 0 || others.length === 0)) {
    return ofVerb(verb, `is ${client} exec without a command for the pod`, 'write --, then the command');
  }
  const misplaced = verb === 'exec' && end >= 0 ? misplacedInExec(others[0], after[0]) : undefined;
  if (misplaced !== undefined) return { problem: misplaced };
  const ports = verb === 'port-forward' ? afterPod : [];
  if (verb === 'port-forward' && ports.length === 0) {
    return ofVerb(verb, `is ${client} port-forward without a port`, 'write one after the pod, such as 8080:8080');
  }
  const wrong = ports.find((port) => remotePortOf(port) === undefined);
  if (wrong !== undefined) {
    const remedy =
      'write REMOTE, LOCAL:REMOTE, or :REMOTE, where LOCAL is a number, and REMOTE a number from 1 to 65535 or the name of a container port';
    return ofVerb(verb, `has the port ${shown(wrong)}`, remedy);
  }
  return {
    verb,
    namespace: options.findLast(({ name }) => name === '-n' || name === '--namespace')?.value,
    lacksSeparator: verb === 'exec' && end < 0,
    container: container?.value ?? (verb === 'logs' ? afterPod[0] : undefined),
    portNames: ports.flatMap((port) => remotePortOf(port) ?? []).filter((port) => /[a-z]/.test(port)),
  };
}

interface Option {
  readonly name: Word;
  readonly value: Word | undefined;
}

/** Stops after an option that is not allowed, because it may take the next word as its value. */
function argumentsOf(words: readonly Word[]): {
  readonly operands: readonly Word[];
  readonly options: readonly Option[];
  readonly verb: Verb | undefined;
} {
  const operands: Word[] = [];
  const options: Option[] = [];
  let verb: Verb | undefined;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (!word.startsWith('-')) {
      operands.push(word);
      verb ??= verbs.find((known) => known === word);
      if (!verb) break;
      continue;
    }
    const [name = '', ...attached] = word.split('=');
    const kind = (verb ? optionsOf[verb] : earlyOptions).get(name);
    if (kind === undefined) {
      options.push({ name, value: undefined });
      break;
    }
    const value = attached.length > 0 ? attachedValue(name, attached.join('=')) : valueApart(kind, words[index + 1]);
    options.push({ name, value });
    if (attached.length === 0 && kind !== 'flag' && value !== undefined) index += 1;
  }
  return { operands, options, verb };
}

function extraWord(verb: Verb, [first, second]: readonly Word[], container: Option | undefined): string | undefined {
  if (first === undefined) return undefined;
  if (verb === 'attach') {
    return `has ${shown(first)} after the pod; kubectl attach accepts nothing there: to name a container, write it after -c`;
  }
  if (verb !== 'logs') return undefined;
  if (second !== undefined) {
    return `has ${shown(second)} after the container ${shown(first)}; kubectl logs accepts one container after the pod: remove ${shown(second)}`;
  }
  return (
    container &&
    `names a container both after the pod and with ${container.name}; kubectl accepts only one of them: remove one`
  );
}

function misplacedInExec(afterPod: Word | undefined, afterDashes: Word | undefined): string | undefined {
  if (afterPod !== undefined) {
    return `has ${shown(afterPod)} between the pod and --, which kubectl ignores; write the whole command for the pod after --`;
  }
  if (!afterDashes?.startsWith('-')) return undefined;
  return `has ${shown(afterDashes)} directly after --, where kubectl reads no option; write options before the --, and after it the command`;
}

/** Undefined for `-n=`: kubectl takes the `=` itself as the value of a short option. */
const attachedValue = (name: Word, value: Word): Word | undefined =>
  value === '' && !name.startsWith('--') ? undefined : value;

/**
 * Undefined if `next` looks like another option: its author probably forgot the value. Negative
 * numbers do not, except for `text`.
 */
function valueApart(kind: OptionKind, next: Word | undefined): Word | undefined {
  if (kind === 'flag') return 'true';
  const isOption = kind === 'text' ? next?.startsWith('-') : /^-[^\d.]/.test(next ?? '');
  return isOption ? undefined : next;
}

const booleans: readonly Word[] = ['1', 't', 'T', 'TRUE', 'true', 'True', '0', 'f', 'F', 'FALSE', 'false', 'False'];
/** -1, or a number that is decimal, octal after 0, or hexadecimal after 0x. */
const lineCount = /^(-1|\+?(0[0-7]{0,15}|[1-9]\d{0,14}|0x[0-9a-f]{1,12}))$/i;

/** kubectl rounds `--since` to whole seconds, and this not to zero. */
const shortestSinceNs = 500_000_000n;

/** Empty if kubectl accepts the value, or if a placeholder decides. */
function valueProblem(name: Word, value: Word | undefined, kind: OptionKind | undefined): readonly string[] {
  if (value === undefined) return ['without a value; write one, or remove the option'];
  if (value.includes('\0')) return [];
  if (kind === 'flag' && !booleans.includes(value)) {
    return [`with the value ${quote(value)}; write true or false, or only ${name}`];
  }
  if (kind === 'lines' && !lineCount.test(value)) {
    return [`with the value ${quote(value)}; write a number of lines, or -1 for all`];
  }
  const isSeconds = kind === 'timeout' && /^(\+?\d{1,15})?$/.test(value);
  if (isSeconds || (kind !== 'duration' && kind !== 'timeout')) return [];
  const parsed = parseGoDuration(value);
  if ('error' in parsed) return [`whose value ${parsed.error}`];
  if (kind === 'timeout') return [];
  if (name === '--since' && parsed.ns > 0n && parsed.ns < shortestSinceNs) {
    const why = 'which kubectl rounds to 0s, and the API server rejects that';
    return [`with the value ${quote(value)}, ${why}; write at least 500ms`];
  }
  const isTooShort = parsed.ns < 0n || (parsed.ns === 0n && name === '--pod-running-timeout');
  return isTooShort ? [`with the value ${quote(value)}; write a duration above zero, such as 10m`] : [];
}

const highestPort = 65_535;
const isPort = (text: string, lowest: number): boolean =>
  /^\d{1,15}$/.test(text) && Number(text) >= lowest && Number(text) <= highestPort;
/** At most 15 characters with a letter. */
const isPortName = (text: string): boolean => /^(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$/.test(text);

/** Empty if a placeholder decides; undefined if the form is wrong. */
function remotePortOf(argument: Word): Word | undefined {
  if (argument.includes('\0')) return '';
  const [local = '', remote = local, ...others] = argument.split(':');
  const hasRemote = isPort(remote, 1) || isPortName(remote);
  const hasLocal = local === remote || isPort(local, 0) || (local === '' && argument !== remote);
  return hasRemote && hasLocal && others.length === 0 ? remote : undefined;
}

import type { TemplateRule } from '../../api/access/grant.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import { listIn, own, strings } from '../../kit/json-value.ts';
import { describeRight, type RbacRule, uncovered } from '../../rbac/rule-cover.ts';
import {
  type AccessCommand,
  type CommandSubject,
  parseAccessCommand,
  refuse,
  renderAccessCommand,
} from './access-command.ts';
import { notGrantable, rulesOf } from './granted-rules.ts';
import { callOf, type KubectlCall, type Offer, type Verb, verbs } from './kubectl-call.ts';
import { listNames } from './names.ts';
import type { Violation } from './policy.ts';
import { sessionOf } from './session-policy.ts';
import { markers, shown, type Word, wordsOf } from './shell-words.ts';

type Refused = { readonly violation: Violation };
type CommandConfig = Pick<AccessConfig, 'accessCommand' | 'exec' | 'rules'>;

/**
 * Requesters paste the command into their shells, so it must call kubectl or oc for the granted
 * pod, and nothing else. Neither the namespace nor `--context` is checked.
 */
export function readAccessCommand(
  config: CommandConfig,
  grantable: readonly RbacRule[] = rulesOf(config),
): ({ readonly command: AccessCommand } & KubectlCall) | Refused {
  const parsed = parseAccessCommand(config.accessCommand);
  if ('violation' in parsed) return parsed;
  const split = wordsOf(parsed.command);
  const read = 'problem' in split ? split : callOf(split.words, offerOf(config, grantable));
  return 'problem' in read ? refuse(read.problem, read.key) : { ...parsed, ...read };
}

/** Also for another namespace, and, without exec, for a command that no rule allows. */
export function accessCommandViolation(
  config: AccessConfig,
  namespace: string,
  grantable: readonly RbacRule[],
): Violation | undefined {
  const read = readAccessCommand(config, grantable);
  if ('violation' in read) return read.violation;
  const foreign = namespaceViolation(read.namespace, namespace);
  if (foreign) return foreign;
  const ungranted = config.exec === false ? ungrantedCommand(config, read.verb, grantable) : undefined;
  // The key (`Violation.key`) omits the remedy, because an edit of the rules changes it.
  return ungranted && refuse(`${ungranted.found}; ${ungranted.remedy}`, ungranted.found).violation;
}

/** A clause in the imperative. */
export function accessCommandRemedy(config: CommandConfig, namespace: string, grantable: readonly RbacRule[]): string {
  const read = readAccessCommand(config, grantable);
  if ('violation' in read) return `correct the command: ${read.violation.message}`;
  const foreign = namespaceViolation(read.namespace, namespace);
  if (foreign) return `correct the command: ${foreign.message}`;
  const possible = commandExample(config, grantable);
  return possible === undefined ? addedRule(grantable, read.verb) : `write, for example, ${possible}`;
}

/**
 * Why a valid command can fail for some, one sentence each. No violation: they may hold the
 * permission, or select the namespace. Empty for gateway access, which has its own command.
 */
export function accessCommandNotes(config: AccessConfig, grantable: readonly RbacRule[]): readonly string[] {
  const read = readAccessCommand(config, grantable);
  return 'violation' in read || sessionOf(config) ? [] : notesOf(doubtsForRequesters(config, read, grantable));
}

/** Containers and ports that the pod lacks. No violation: webhooks may add both. */
export function podCommandNotes(config: AccessConfig, spec: unknown, title: string): readonly string[] {
  const read = readAccessCommand(config);
  return 'violation' in read || sessionOf(config) ? [] : notesOf(doubtsForPod(read, podNamesOf(spec), title));
}

/** For the requester of the granted pod: without remedies, which are for the author. */
export function commandDoubts(config: AccessConfig, names: PodNames, title: string): readonly string[] {
  const read = readAccessCommand(config);
  if ('violation' in read) return [];
  return [...doubtsForPod(read, names, title), ...doubtsForRequesters(config, read, [])].map(
    ({ found, existing = [] }) => (existing.length === 0 ? found : `${found} (it has ${listNames(existing)})`),
  );
}

export interface PodNames {
  /** Of containers and init containers. */
  readonly containers: readonly string[];
  readonly ports: readonly string[];
}

export function podNamesOf(spec: unknown): PodNames {
  const containers = ['containers', 'initContainers'].flatMap((list) => listIn(spec, list));
  return {
    containers: strings(containers.map((container) => own(container, 'name'))),
    ports: strings(containers.flatMap((container) => listIn(container, 'ports').map((port) => own(port, 'name')))),
  };
}

/** `found` ends a sentence that begins with the command; `remedy` is for its author. */
interface Doubt {
  readonly found: string;
  /** The names that the pod has instead, for its requester. */
  readonly existing?: readonly string[];
  readonly remedy: string;
}

const notesOf = (doubts: readonly Doubt[]): readonly string[] =>
  doubts.map(({ found, remedy }) => `spec.accessConfig.accessCommand ${found}; ${remedy}`);

function doubtsForRequesters(config: AccessConfig, read: KubectlCall, grantable: readonly RbacRule[]): Doubt[] {
  const ungranted = config.exec === false ? undefined : ungrantedCommand(config, read.verb, grantable);
  const doubts: Doubt[] = [];
  if (read.lacksSeparator) {
    const found = 'has no -- before the command for the pod, which kubectl rejects from version 1.31 on';
    doubts.push({ found, remedy: 'write -- before that command' });
  }
  if (!read.namespace) {
    const found = 'has no -n, so it fails for requesters whose kubeconfig selects another namespace';
    doubts.push({ found, remedy: 'write -n {{ .Metadata.Namespace }}' });
  }
  // The last one, because it can end with a command, which no other sentence must follow.
  if (ungranted) {
    const found = `${ungranted.found}, so it fails for requesters who do not already hold this permission`;
    doubts.push({ found, remedy: ungranted.remedy });
  }
  return doubts;
}

function doubtsForPod(
  { container = '', portNames }: KubectlCall,
  { containers, ports }: PodNames,
  title: string,
): Doubt[] {
  const doubts: Doubt[] = [];
  // The value of a placeholder, for which a marker stands, is unknown here.
  const isKnown = containers.length > 0 && container !== '' && !container.includes('\0');
  if (isKnown && !containers.includes(container)) {
    doubts.push({
      found: `names the container ${quote(container)}, which ${title} does not have`,
      existing: containers,
      remedy: `unless a webhook adds it, write one of ${listNames(containers)}`,
    });
  }
  const knownPorts = new Set(ports);
  const lackedPorts = portNames.filter((port) => !knownPorts.has(port));
  if (lackedPorts.length > 0) {
    const portChoice = ports.length === 0 ? '' : ` or one of ${listNames(ports)}`;
    doubts.push({
      found: `names ports that no container of ${title} has: ${listNames(lackedPorts)}`,
      existing: ports,
      remedy: `unless a webhook adds them, write a number${portChoice}`,
    });
  }
  return doubts;
}

function namespaceViolation(word: Word | undefined, namespace: string): Violation | undefined {
  if (!word || word === markers.namespace || word === namespace) return undefined;
  return refuse(
    `has the namespace ${shown(word)}, and the granted pod is in the namespace of the template, ${quote(namespace)}; write -n {{ .Metadata.Namespace }}`,
  ).violation;
}

function ungrantedCommand(
  config: AccessConfig,
  verb: Verb,
  grantable: readonly RbacRule[],
): { readonly found: string; readonly remedy: string } | undefined {
  const [needed] = uncovered(rulesOf(config), [ruleFor[verb]]);
  if (!needed) return undefined;
  const possible = commandExample(config, grantable);
  const ways = [
    // A template without exec must not have a rule for it.
    ...(verb !== 'exec' && isGrantable(verb, grantable) ? [addRule(verb)] : []),
    ...(possible === undefined ? [] : [`write a command that the template allows, for example: ${possible}`]),
  ];
  const why = verb === 'exec' ? 'exec: false excludes exec, also as the default command: ' : '';
  return {
    found: `is kubectl ${verb}, which needs ${describeRight(needed)}, and the template does not hand that out`,
    remedy: `${why}${ways.length > 0 ? ways.join(', or ') : addedRule(grantable, verb)}`,
  };
}

const addRule = (verb: Verb): string => `add ${flowOf(ruleFor[verb])} to spec.accessConfig.rules`;

const isGrantable = (verb: Verb, grantable: readonly RbacRule[]): boolean =>
  notGrantable([ruleFor[verb]], grantable).length === 0;

/** How to get a rule for `preferred`, or for a verb of `grantable`, or from an administrator. */
function addedRule(grantable: readonly RbacRule[], preferred: Verb): string {
  const candidates = [preferred, 'logs', 'port-forward', 'attach'] as const;
  const others = candidates.filter((candidate) => candidate !== 'exec');
  const possible = others.find((candidate) => isGrantable(candidate, grantable));
  const verb = possible ?? others[0] ?? 'logs';
  const add =
    possible === undefined
      ? `ask an administrator to add ${flowOf(ruleFor[verb])} to the chart value grantable, then add it to spec.accessConfig.rules`
      : addRule(verb);
  return verb === preferred ? add : `${add}, and write: ${examples[verb]}`;
}

type RuleConfig = Pick<AccessConfig, 'exec' | 'rules'>;

/** If `exec` is false, a rule for exec is invalid. */
const handedOut = (config: RuleConfig, grantable: readonly RbacRule[]): readonly Verb[] =>
  verbsOf(rulesOf(config)).filter((verb) => (verb !== 'exec' || config.exec !== false) && isGrantable(verb, grantable));

const verbsOf = (rules: readonly TemplateRule[]): readonly Verb[] =>
  verbs.filter((verb) => uncovered(rules, [ruleFor[verb]]).length === 0);

const exampleOf = ([first]: readonly Verb[]): string | undefined => first && examples[first];

/** A command that the template allows, of the preferred verb if possible. */
const commandExample = (config: RuleConfig, grantable: readonly RbacRule[], preferred?: Verb): string | undefined => {
  const possible = handedOut(config, grantable);
  return exampleOf(possible.filter((verb) => verb === preferred)) ?? exampleOf(possible);
};

export const grantExample = (rules: readonly TemplateRule[]): string | undefined => exampleOf(verbsOf(rules));

/** With exec, any verb may be named: requesters may hold the permission without the grant. */
function offerOf(config: RuleConfig, grantable: readonly RbacRule[]): Offer {
  const possible = handedOut(config, grantable);
  const withoutExec = possible.length === 0 ? verbs.filter((verb) => verb !== 'exec') : possible;
  return {
    verbs: config.exec === false ? withoutExec : verbs,
    example: (preferred) => commandExample(config, grantable, preferred),
    exampleOf: (verb) => (possible.includes(verb) ? examples[verb] : undefined),
  };
}

/** YAML in flow style. */
const flowOf = ({ resources, verbs: names }: TemplateRule): string =>
  `{apiGroups: [''], resources: [${resources.join(', ')}], verbs: [${names.join(', ')}]}`;

/** For one pod. Code `InvalidAccessCommand` also if the command does not fit the pod. */
export function renderAccessMessage(config: CommandConfig, pod: CommandSubject): { readonly text: string } | Refused {
  const read = readAccessCommand(config);
  return 'violation' in read ? read : renderAccessCommand(read.command, pod);
}

const onPods = (subresource: string, verb: string): TemplateRule => ({
  apiGroups: [''],
  resources: [`pods/${subresource}`],
  verbs: [verb],
});
const ruleFor: Readonly<Record<Verb, TemplateRule>> = {
  exec: onPods('exec', 'create'),
  attach: onPods('attach', 'create'),
  logs: onPods('log', 'get'),
  'port-forward': onPods('portforward', 'create'),
};
const target = '-n {{ .Metadata.Namespace }} {{ .Metadata.Name }}';
const examples: Readonly<Record<Verb, string>> = {
  exec: `kubectl exec -ti ${target} -- /bin/sh`,
  attach: `kubectl attach -ti ${target}`,
  logs: `kubectl logs -f ${target}`,
  'port-forward': `kubectl port-forward ${target} 8080:8080`,
};

import type { TemplateRule } from '../../api/access/grant.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import { listIn, own, strings } from '../../kit/json-value.ts';
import { describeRight, uncovered } from '../../rbac/rule-cover.ts';
import {
  type AccessCommand,
  type CommandSubject,
  parseAccessCommand,
  refuse,
  renderAccessCommand,
} from './access-command.ts';
import { rulesOf } from './granted-rules.ts';
import { callOf, type KubectlCall, type Offer, type Verb, verbs } from './kubectl-call.ts';
import { listNames } from './names.ts';
import type { Violation } from './policy.ts';
import { sessionOf } from './session-policy.ts';
import { markers, shown, type Word, wordsOf } from './shell-words.ts';

type Refused = { readonly violation: Violation };
type CommandConfig = Pick<AccessConfig, 'accessCommand' | 'exec' | 'rules'>;

/**
 * Parses the access command of a template. Requesters paste it into their own shells, so it must call kubectl or oc for the granted pod,
 * and contain nothing else that a shell executes. Checks the name of the pod, but neither its namespace nor `--context`. Everything after
 * `--` of `exec` runs in the pod. Code `InvalidAccessCommand`.
 */
export function readAccessCommand(
  config: CommandConfig,
): ({ readonly command: AccessCommand } & KubectlCall) | Refused {
  const parsed = parseAccessCommand(config.accessCommand);
  if ('violation' in parsed) return parsed;
  const split = wordsOf(parsed.command);
  const read = 'problem' in split ? split : callOf(split.words, offerOf(config));
  return 'problem' in read ? refuse(read.problem, read.key) : { ...parsed, ...read };
}

/**
 * Why the access command of a template in `namespace` is invalid; undefined if it is valid. It must not name another namespace. If the
 * template excludes exec, its rules must allow the command. Code `InvalidAccessCommand`.
 */
export function accessCommandViolation(config: AccessConfig, namespace: string): Violation | undefined {
  const read = readAccessCommand(config);
  if ('violation' in read) return read.violation;
  const foreign = namespaceViolation(read.namespace, namespace);
  if (foreign) return foreign;
  const ungranted = config.exec === false ? ungrantedCommand(config, read.verb) : undefined;
  return ungranted && refuse(`${ungranted.found}; ${ungranted.remedy}`).violation;
}

/**
 * What can make a valid access command fail for some requesters, with the remedy, one sentence each. Requesters may hold a permission that
 * the template does not hand out, their context may name the namespace, and their kubectl may be old, so none of these is a violation.
 * Empty if requesters go through the gateway, because the server then shows them its command instead.
 */
export function accessCommandNotes(config: AccessConfig): readonly string[] {
  const read = readAccessCommand(config);
  if ('violation' in read || sessionOf(config)) return [];
  const ungranted = config.exec === false ? undefined : ungrantedCommand(config, read.verb);
  const notes = [
    ...(read.lacksSeparator
      ? ['has no -- before the command for the pod, which kubectl rejects from version 1.31 on; write it']
      : []),
    ...(read.namespace
      ? []
      : [
          'has no -n, so it fails for requesters whose kubeconfig selects another namespace; write -n {{ .Metadata.Namespace }}',
        ]),
    // The last one, because it can end with a command, which no other sentence must follow.
    ...(ungranted
      ? [`${ungranted.found}, so it fails for requesters who do not already hold this permission; ${ungranted.remedy}`]
      : []),
  ];
  return notes.map((note) => `spec.accessConfig.accessCommand ${note}`);
}

/**
 * What a valid access command names that the pod with this `spec` does not have: a container, or a port by its name. Webhooks may add both,
 * so neither is a violation. `title` names the pod in the notes. Empty for a template whose requesters go through the gateway.
 */
export function podCommandNotes(config: AccessConfig, spec: unknown, title: string): readonly string[] {
  const read = readAccessCommand(config);
  if ('violation' in read || sessionOf(config)) return [];
  const containers = ['containers', 'initContainers'].flatMap((list) => listIn(spec, list));
  const names = strings(containers.map((container) => own(container, 'name')));
  const ports = strings(containers.flatMap((container) => listIn(container, 'ports').map((port) => own(port, 'name'))));
  const { container = '', portNames } = read;
  // The value of a placeholder, for which a marker stands, is unknown here.
  const lacksContainer =
    names.length > 0 && container !== '' && !container.includes('\0') && !names.includes(container);
  const knownPorts = new Set(ports);
  const lackedPorts = portNames.filter((port) => !knownPorts.has(port));
  const portChoice = ports.length === 0 ? '' : ` or one of ${listNames(ports)}`;
  return [
    ...(lacksContainer
      ? [
          `names the container ${quote(container)}, which ${title} does not have; unless a webhook adds it, write one of ${listNames(names)}`,
        ]
      : []),
    ...(lackedPorts.length === 0
      ? []
      : [
          `names ports that no container of ${title} has: ${listNames(lackedPorts)}; unless a webhook adds them, write a number${portChoice}`,
        ]),
  ].map((note) => `spec.accessConfig.accessCommand ${note}`);
}

function namespaceViolation(word: Word | undefined, namespace: string): Violation | undefined {
  if (!word || word === markers.namespace || word === namespace) return undefined;
  return refuse(
    `has the namespace ${shown(word)}, and the granted pod is in the namespace of the template, ${quote(namespace)}; write -n {{ .Metadata.Namespace }}`,
  ).violation;
}

/** The right that the command needs and the template does not hand out, and the remedy, which can end with a command; undefined if there is none. */
function ungrantedCommand(
  config: AccessConfig,
  verb: Verb,
): { readonly found: string; readonly remedy: string } | undefined {
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
  return {
    found: `is kubectl ${verb}, which needs ${describeRight(needed)}, and the template does not hand that out`,
    remedy: `${why}${remedy}`,
  };
}

type RuleConfig = Pick<AccessConfig, 'exec' | 'rules'>;

const isGranted = (config: RuleConfig, verb: Verb): boolean => uncovered(rulesOf(config), [ruleFor[verb]]).length === 0;

/** An access command that the template allows, with the preferred verb if allowed; undefined if it allows none. */
export const commandExample = (config: RuleConfig, preferred: Verb = 'exec'): string | undefined => {
  const verb = [preferred, ...verbs].find((candidate) => isGranted(config, candidate));
  return verb && examples[verb];
};

/** What an invalid command can be instead. A template with exec may name any verb: requesters may hold the permission without its grant. */
function offerOf(config: RuleConfig): Offer {
  const granted = config.exec === false ? verbs.filter((verb) => isGranted(config, verb)) : verbs;
  return {
    verbs: granted.length === 0 ? verbs : granted,
    example: (preferred) => commandExample(config, preferred),
  };
}

/** The rule as YAML in flow style. */
const flowOf = ({ resources, verbs: names }: TemplateRule): string =>
  `{apiGroups: [''], resources: [${resources.join(', ')}], verbs: [${names.join(', ')}]}`;

/** The command for the requester to type, for one pod. Code `InvalidAccessCommand` if the command is invalid, or does not fit the pod. */
export function renderAccessMessage(config: CommandConfig, pod: CommandSubject): { readonly text: string } | Refused {
  const read = readAccessCommand(config);
  return 'violation' in read ? read : renderAccessCommand(read.command, pod);
}

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
const target = '-n {{ .Metadata.Namespace }} {{ .Metadata.Name }}';
const examples: Readonly<Record<Verb, string>> = {
  exec: `kubectl exec -ti ${target} -- /bin/sh`,
  attach: `kubectl attach -ti ${target}`,
  logs: `kubectl logs -f ${target}`,
  'port-forward': `kubectl port-forward ${target} 8080:8080`,
};

import type { KubeObject } from '../../api/object.ts';
import { isRecord } from '../../kit/json-value.ts';
import { shorten } from '../../kit/shorten.ts';
import { podReachViolations, serviceAccountOf } from '../builders/pod-security-baseline.ts';

/** Why the API server rejects an object of a grant, and what to do. No final periods. */
export interface RefusalText {
  readonly cause: string;
  /** For the template's author or an administrator. */
  readonly remedy: string;
  /** What a requester can do, or whom to ask. */
  readonly requesterRemedy: string;
  /** Without an edit of the template or its workload. */
  readonly endsWithoutEdit: boolean;
}

/** Characters of the API server's message in ours. */
const maxCause = 512;

/** Read characters: webhooks choose messages, and the patterns take quadratic time. */
const maxMessage = 8192;

const correctPod =
  'correct the field in spec.podSpec, or in spec.controllerTargetMutationConfig and the workload, as in a Pod';

/** The first that matches applies. */
const remedies: readonly (readonly [
  cause: RegExp,
  remedy: string | ((object: KubeObject) => string),
  endsWithoutEdit: boolean,
])[] = [
  [
    /^exceeded quota: /,
    'lower the resources of the pod if the quota limits them, or ask an administrator to raise the ResourceQuota',
    true,
  ],
  [/^failed quota: /, 'set the resources that the ResourceQuota asks for in the pod', true],
  [
    /^violates PodSecurity /,
    'correct the fields of the pod that it names, or ask an administrator for another Pod Security level',
    true,
  ],
  [/no PriorityClass with name /, 'name an existing PriorityClass, or ask an administrator to create it', true],
  [/^error looking up service account /, 'create the ServiceAccount, or name another one', true],
  [
    /^the server does not hold /,
    'remove them from spec.accessConfig.rules, or ask an administrator to add them to the chart value grantable',
    true,
  ],
  [/access\.drawbridge\.dev\/allow-privileged on the Namespace/, baselineRemedy, true],
  [/\bNamespaceClosed: /, 'move the template and its workload to another namespace', false],
  [/^cannot be handled as an? /, correctPod, false],
  [/^is invalid: /, correctPod, false],
];
const otherRemedy = 'change the template so that the API server accepts it, or ask an administrator';

const maxFields = 3;

/** Names no field of a pod within the baseline level, because a webhook may have added it. */
function baselineRemedy({ metadata, spec }: KubeObject): string {
  const podSpec = isRecord(spec) ? spec : {};
  // The policy limits neither the node nor the ServiceAccount.
  const violations = podReachViolations(
    { metadata: { ...metadata }, spec: podSpec },
    podSpec,
    serviceAccountOf(podSpec),
  );
  const fields = [...new Set(violations.map(({ field = '' }) => field))];
  const more = fields.length > maxFields ? [`${fields.length - maxFields} more`] : [];
  const named = new Intl.ListFormat('en').format([...fields.slice(0, maxFields), ...more]);
  const remove = `remove ${named} of the pod (in spec.podSpec or patchSpecOperations) and spec.allowPrivilegedPod of the template, or `;
  return `${fields.length > 0 ? remove : ''}ask an administrator to add the label: kubectl label namespace ${metadata.namespace ?? ''} access.drawbridge.dev/allow-privileged=true`;
}

/** At most 512 characters, without the object's name, our username, and the use of a quota. */
export function refusalText(message: string, object: KubeObject): RefusalText {
  const cause = causeIn(message);
  const [, remedy, endsWithoutEdit] = remedies.find(([pattern]) => pattern.test(cause)) ?? ['', otherRemedy, true];
  const text = typeof remedy === 'string' ? remedy : remedy(object);
  return { cause: shorten(cause, maxCause), remedy: text, requesterRemedy: asked(cause, text), endsWithoutEdit };
}

/** A requester can edit no template. Other objects of the namespace may have used up a quota. */
function asked(cause: string, remedy: string): string {
  if (cause.startsWith('exceeded quota: '))
    return 'wait until objects that use the quota are gone, or ask an administrator to raise the ResourceQuota';
  return remedy.startsWith('ask ') ? remedy : `ask the author of the template to ${remedy}`;
}

/** From strict validation; undefined for any other message. */
export function unknownFieldsIn(message: string): string[] | undefined {
  const [, errors] = /: strict decoding error: (.*)$/s.exec(message) ?? [];
  return errors === undefined
    ? undefined
    : [...errors.matchAll(/unknown field "([^"]{1,256})"/g)].map(([, field = '']) => field);
}

const ignoredLead = 'the API server ignores fields that a Pod does not have: ';

export const ignoredFieldsNote = (fields: readonly string[]): string =>
  fields.length === 0 ? '' : `; ${ignoredLead}${fields.join(', ')}; correct or remove them`;

/** The clause of `ignoredFieldsNote`, without the advice. */
export function ignoredFieldsText(message: string): string {
  const at = message.indexOf(ignoredLead);
  return at < 0 ? '' : message.slice(at).replace(/; correct or remove them$/, '');
}

/** Go types in terms of JSON. */
const goTypes: Readonly<Record<string, string>> = {
  string: 'a string',
  bool: 'true or false',
  int32: 'a number',
  int64: 'a number',
  '[]string': 'a list of strings',
  'map[string]string': 'a map of strings',
};

function causeIn(message: string): string {
  const line = message
    .slice(0, maxMessage)
    .replace(/^\d{3}: /, '')
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim();
  const rights = rightsNotHeld(line);
  if (rights) return `the server does not hold ${rights}`;
  return (
    line
      // The name, which no other object has: `Pod "x" is invalid: `, `pods "x" is forbidden: `.
      .replace(/^[\w.]+ "[^"]*" (?:is forbidden: |(?=is invalid: ))/, '')
      .replace(/^[A-Z]\w* in version "[^"]*" (?=cannot be handled )/, '')
      .replace(
        /json: cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)/,
        (_, found: string, field: string, type: string) =>
          `${field} is of type ${found}, not ${goTypes[type] ?? (type.startsWith('[]') ? 'a list' : 'an object')}`,
      )
      // How much is used changes with each pod, and would cause a status write.
      .replace(/, used: .*?(?=, limited: )/g, '')
      // The remedy has the command.
      .replace(
        /; kubectl debug works with --profile=baseline; an administrator sets it with kubectl label namespace NAMESPACE \S+$/,
        '',
      )
  );
}

/** Rights that RBAC does not let the server grant: `get of pods/log`. */
function rightsNotHeld(line: string): string | undefined {
  if (!line.includes('is attempting to grant RBAC permissions not currently held')) return undefined;
  const list = (text = ''): string => text.replaceAll('"', '');
  const rules = [...line.matchAll(/Resources:\[([^\]]*)\][^}]*?Verbs:\[([^\]]*)\]/g)];
  return rules.map(([, resources, verbs]) => `${list(verbs)} of ${list(resources)}`).join('; ') || 'the rules';
}

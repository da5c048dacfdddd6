import type { TemplateSpec } from '../../api/access/kinds.ts';
import type { ControllerTargetMutationConfig } from '../../api/access/mutation-config.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { quote } from '../../kit/errors.ts';
import { durationText, parseGoDuration } from '../../kit/go-duration.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import { parseQuantity } from '../../kit/quantity.ts';
import type { RbacRule } from '../../rbac/rule-cover.ts';
import { accessCommandViolation } from './access-command.ts';
import { longestAccessMs, verifyDurations } from './duration-choice.ts';
import {
  grantableRemedy,
  grantableViolations,
  notGrantable,
  rulesViolations,
  withoutExecViolations,
  withValidRules,
} from './granted-rules.ts';
import { groupNamesViolations, templateGroupsViolations } from './group-policy.ts';
import { isObjectName } from './names.ts';
import { parsePatchOperation, patchViolation } from './patch-operation.ts';
import { grantToViolations } from './people-policy.ts';
import { isDeadline, setDeadline } from './pod-deadline.ts';
import { type Check, type RuleBook, refuse, type Violation } from './policy.ts';
import { reasonConfigViolation } from './reason.ts';
import { gatewayRulesViolations, sessionOf, sessionViolations } from './session-policy.ts';
import { windowsViolations } from './start-windows.ts';

export interface TemplateInput {
  readonly kind: TemplateKind;
  readonly namespace: string;
  readonly name: string;
  readonly spec: TemplateSpec;
  /** What templates may hand out in addition to the rules of every grant. */
  readonly grantable: readonly RbacRule[];
  readonly serverNamespace?: string | undefined;
}

/** What determines the objects that the server would create for a request. */
export type PlannedTemplate = Omit<TemplateInput, 'grantable' | 'serverNamespace'>;

/** No violation: the plan had no processor time, or exceeds `admissionWork`. */
export const notPlanned = 'NotPlanned';

type CheckAll = (input: TemplateInput) => readonly Violation[];

/**
 * An admission policy denies these to the server, so that its stolen token opens no access there.
 */
const namespaceIsOpen: Check<TemplateInput> = ({ namespace, serverNamespace }) =>
  namespace === 'kube-system' || namespace === serverNamespace
    ? refuse(
        'NamespaceClosed',
        `metadata.namespace is ${namespace}; the server opens no access in kube-system or in its own namespace: move the workload and the template to another namespace`,
        'metadata.namespace',
        403,
      )
    : undefined;

const durationsAreValid: CheckAll = ({ spec }) => verifyDurations(spec.accessConfig);

const hasNoSystemGroup: CheckAll = ({ spec }) => templateGroupsViolations(spec.accessConfig);

const groupsCanMatch: CheckAll = ({ spec }) => groupNamesViolations(spec.accessConfig);

const grantsToOnePerson: CheckAll = ({ spec }) => grantToViolations(spec.accessConfig);

const reasonPatternIsValid: Check<TemplateInput> = ({ spec }) => reasonConfigViolation(spec.accessConfig.reason);

const windowsAreValid: CheckAll = ({ spec }) => windowsViolations(spec.accessConfig.start?.windows ?? []);

const accessCommandIsValid: Check<TemplateInput> = ({ spec: { accessConfig } }) =>
  accessConfig.accessCommand === undefined ? undefined : accessCommandViolation(accessConfig);

const hasTarget: Check<TemplateInput> = ({ kind, spec }) => {
  const ref = own(spec, 'controllerTargetRef');
  if (isRecord(ref)) return targetNameViolation(ref);
  if (kind === 'PodAccessTemplate' && own(spec, 'podSpec')) return undefined;
  const needed = kind === 'PodAccessTemplate' ? 'controllerTargetRef or podSpec' : 'controllerTargetRef';
  return invalid('InvalidTemplate', 'spec', `the template names no target; set ${needed}`);
};

/** No object can have this name: the template would wait for ever. */
function targetNameViolation({ kind, name }: JsonObject): Violation | undefined {
  if (isObjectName(name)) return undefined;
  const text = String(name);
  const remedy = isObjectName(text.trim())
    ? `write ${quote(text.trim())}, without spaces around it`
    : 'names have at most 253 lower-case letters, digits, "-", and ".", and begin and end with a letter or digit: write the name of the workload';
  return invalid('InvalidTemplate', targetNameField, `no ${String(kind)} can be named ${quote(text)}; ${remedy}`);
}

const targetNameField = 'spec.controllerTargetRef.name';

/** The CRD preserves podSpec without validation. Planning and the API server check the rest. */
const podSpecHasContainers: Check<TemplateInput> = ({ spec }) => {
  const podSpec = own(spec, 'podSpec');
  if (podSpec === undefined) return undefined;
  const containers = own(podSpec, 'containers');
  if (Array.isArray(containers) && containers.length > 0 && containers.every(isRecord)) return undefined;
  return invalid(
    'InvalidTemplate',
    'spec.podSpec.containers',
    'must be a list with at least one container; write each as in a Pod',
  );
};

const patchIsWellFormed: CheckAll = ({ spec }) =>
  (mutationOf(spec)?.patchSpecOperations ?? []).flatMap((raw, index) => {
    const parsed = parsePatchOperation(raw, index);
    if ('violation' in parsed) return [parsed.violation];
    return (['path', 'from'] as const).flatMap((member) => {
      const pointer = parsed.operation[member];
      return !pointer || pointer[0] === 'spec' || pointer[0] === 'metadata'
        ? []
        : [
            patchViolation(
              index,
              raw,
              `${member} must begin with /spec or /metadata, the parts of a pod template`,
              member,
            ),
          ];
    });
  });

const quantitiesAreValid: CheckAll = ({ spec }) => {
  const caps = ['maxCpu', 'maxMemory', 'maxStorage'].map((field) => {
    const value = own(spec, field);
    return value === undefined ? undefined : checkQuantity(value, `spec.${field}`, 'positive');
  });
  const resources = mutationOf(spec)?.resources;
  const quantities = (['limits', 'requests'] as const).flatMap((list) =>
    Object.entries(resources?.[list] ?? {}).map(([name, value]) =>
      checkQuantity(value, `spec.controllerTargetMutationConfig.resources.${list}.${name}`, 'zero'),
    ),
  );
  return [...caps, ...quantities].filter((violation) => violation !== undefined);
};

const rulesAreOnThePod: CheckAll = ({ spec }) => rulesViolations(spec.accessConfig.rules);

const rulesReplaceExec: CheckAll = ({ spec }) => withoutExecViolations(spec.accessConfig);

const hasInvalidRules = (input: TemplateInput): boolean =>
  rulesAreOnThePod(input).length > 0 || rulesReplaceExec(input).length > 0;

/** Skips invalid names: the rule `rules` reports them, and no administrator can allow them. */
const rulesAreGrantable: CheckAll = ({ spec, grantable }) =>
  grantableViolations(withValidRules(spec.accessConfig), grantable);

const sessionWorks: CheckAll = ({ spec }) => sessionViolations(spec.accessConfig);

/** Skips invalid names, as `rulesAreGrantable` does. */
const gatewayPassesRules: CheckAll = ({ spec: { accessConfig } }) =>
  gatewayRulesViolations(withValidRules(accessConfig));

export const templatePolicy: RuleBook<TemplateInput> = {
  namespace: {
    requirement: 'the server opens access in the namespace',
    check: namespaceIsOpen,
    remedy: () => 'move the workload and the template to another namespace',
  },
  durations: {
    requirement: 'the durations are Go durations, and the default is not above the maximum',
    check: durationsAreValid,
    remedy: () => 'write Go durations from 1s to 87600h, such as 30m, with defaultDuration not above maxDuration',
  },
  groups: {
    requirement: 'the groups of the template are groups of people, not groups of Kubernetes itself',
    check: hasNoSystemGroup,
    remedy: ({ spec }) =>
      `correct the groups: ${templateGroupsViolations(spec.accessConfig)[0]?.message ?? 'the groups'}`,
  },
  'group-names': {
    requirement: 'no name of a group begins or ends with white space',
    check: groupsCanMatch,
    remedy: ({ spec }) =>
      `remove the spaces around the name in ${groupNamesViolations(spec.accessConfig)[0]?.field ?? 'it'}`,
  },
  'grant-to': {
    requirement: 'approvals and emergencies open access for the requester only',
    check: grantsToOnePerson,
    remedy: () => 'set grantTo to Requester, or remove approvals and emergency',
  },
  session: {
    requirement: 'idleAfter and record are valid, and set only with via: Gateway, which needs grantTo: Requester',
    check: sessionWorks,
    remedy: ({ spec }) => `correct ${sessionViolations(spec.accessConfig)[0]?.field ?? 'spec.accessConfig.session'}`,
  },
  'reason-pattern': {
    requirement: 'the pattern for reasons is a short expression in RE2 syntax',
    check: reasonPatternIsValid,
    remedy: () => 'write, for example, ^(INC|CHG)-[0-9]+',
  },
  windows: {
    requirement: 'the windows name known time zones',
    check: windowsAreValid,
    remedy: () => 'write IANA names, such as Europe/Berlin',
  },
  target: {
    requirement: 'the template names a target, by a name that an object can have',
    check: hasTarget,
    remedy: (input) => {
      if (hasTarget(input)?.field === targetNameField) return `correct ${targetNameField}`;
      return input.kind === 'PodAccessTemplate' ? 'set controllerTargetRef or podSpec' : 'set controllerTargetRef';
    },
  },
  'pod-spec': {
    requirement: 'the podSpec, if set, has a container',
    check: podSpecHasContainers,
    remedy: () => 'write spec.podSpec as in a Pod',
  },
  patch: {
    requirement: 'the patch operations are RFC 6902 operations on a pod template',
    check: patchIsWellFormed,
    remedy: (input) => `correct ${patchIsWellFormed(input)[0]?.field ?? 'the operation'}`,
  },
  quantities: {
    requirement: 'maxCpu, maxMemory, and maxStorage are quantities above zero, resources at least zero',
    check: quantitiesAreValid,
    remedy: () => 'write quantities such as 500m or 2Gi',
  },
  rules: {
    requirement: 'the rules name verbs on pods or their subresources, at most 64',
    check: rulesAreOnThePod,
    remedy: (input) => `correct ${rulesAreOnThePod(input)[0]?.field ?? 'the rules'}`,
  },
  grantable: {
    requirement: 'what allow and rules add is grantable in this installation',
    check: rulesAreGrantable,
    remedy: (input) => {
      const missing = notGrantable(withValidRules(input.spec.accessConfig), input.grantable);
      return missing.length > 0
        ? grantableRemedy(missing, input.grantable)
        : 'ask an administrator to add them to the chart value grantable';
    },
    applies: (input) => !hasInvalidRules(input) || rulesAreGrantable(input).length > 0,
  },
  'without-exec': {
    requirement: 'if exec is false, allow or rules add something else',
    check: rulesReplaceExec,
    remedy: () => 'if exec is false, write allow: [logs], for example, and no rule with pods/exec',
  },
  'access-command': {
    requirement: 'the access command is one call of kubectl or oc, with the granted pod and known placeholders',
    check: accessCommandIsValid,
    remedy: (input) => `correct the command: ${accessCommandIsValid(input)?.message ?? 'accessCommand'}`,
  },
  'session-rules': {
    requirement: 'the gateway, if sessions pass through it, passes the calls that the rules allow',
    check: gatewayPassesRules,
    remedy: () => 'remove rules other than reading the pod, its logs, exec, attach, and port-forward',
    applies: (input) =>
      !sessionOf(input.spec.accessConfig) || !hasInvalidRules(input) || gatewayPassesRules(input).length > 0,
  },
};

/** What is allowed but probably unintended, one sentence each, for the author. */
export function templateWarnings({ kind, namespace, spec }: TemplateInput): string[] {
  const warnings = limitWarnings(spec);
  const { grantTo, maxDuration, extension } = spec.accessConfig;
  if (grantTo === 'AllowedGroups') {
    warnings.push(
      'spec.accessConfig.grantTo is AllowedGroups: one request gives access to every member of the allowed groups, not only to the requester',
    );
  }
  if (extension && isShorter(extension.total, maxDuration)) {
    warnings.push(
      `spec.accessConfig.extension.total ${extension.total} is less than maxDuration ${maxDuration}: access that lasts longer than the total cannot be extended; raise total above maxDuration`,
    );
  }
  const { link, pattern } = spec.accessConfig.reason ?? {};
  if (link?.includes('{match}') && pattern === undefined) {
    warnings.push(
      'spec.accessConfig.reason.link has {match}, but no pattern is set, so no request gets a link; set pattern, or remove {match}',
    );
  }
  if (kind !== 'PodAccessTemplate') return warnings;
  if (own(spec, 'allowPrivilegedPod') === true) {
    warnings.push(
      `spec.allowPrivilegedPod is true: the API server rejects privileged access pods in a namespace without a label; to add it: kubectl label namespace ${namespace} access.drawbridge.dev/allow-privileged=true`,
    );
  }
  const hasRef = own(spec, 'controllerTargetRef') !== undefined;
  if (hasRef && own(spec, 'podSpec') !== undefined) {
    warnings.push(
      'spec.controllerTargetRef and spec.podSpec are both set: the server ignores podSpec; remove one of them',
    );
  }
  if (!hasRef && mutationOf(spec)) {
    warnings.push(
      'the server ignores spec.controllerTargetMutationConfig without spec.controllerTargetRef: remove it, and write the same values into spec.podSpec',
    );
  }
  return warnings;
}

/** An empty `allowedGroups`, and a deadline of the access pod that is too short or ignored. */
export function limitWarnings(spec: Partial<TemplateSpec>): string[] {
  const { allowedGroups, emergency } = spec.accessConfig ?? {};
  const forNoGroup = `spec.accessConfig.allowedGroups is empty: ${emergency ? 'except in an emergency, ' : ''}only users who already hold this access can request it`;
  return [...(allowedGroups?.length === 0 ? [forNoGroup] : []), ...deadlineWarnings(spec)];
}

/** A deadline shorter than the longest access, or that the server ignores. */
function deadlineWarnings(spec: Partial<TemplateSpec>): string[] {
  const set = setDeadline(spec);
  if (!set) return [];
  const { where, seconds } = set;
  if (!isDeadline(seconds)) {
    return [
      `${where} sets activeDeadlineSeconds to ${JSON.stringify(seconds)?.slice(0, 64)}, which is not a whole number from 1 up, so the server uses the granted time instead; remove it`,
    ];
  }
  const longestMs = (spec.accessConfig && longestAccessMs(spec.accessConfig, true)) ?? 0;
  if (seconds * 1000 >= longestMs) return [];
  const [shown, longest] = [seconds * 1000, longestMs].map((ms) => durationText(BigInt(Math.round(ms)) * 1_000_000n));
  return [
    `${where} sets activeDeadlineSeconds to ${seconds}, so access ends after ${shown} at the latest, although the durations of the template allow ${longest}; raise it to at least ${Math.ceil(longestMs / 1000)}, or remove it`,
  ];
}

function isShorter(one: string, other: string): boolean {
  const [first, second] = [parseGoDuration(one), parseGoDuration(other)];
  return 'ns' in first && 'ns' in second && first.ns < second.ns;
}

function mutationOf(spec: TemplateSpec): ControllerTargetMutationConfig | undefined {
  return 'controllerTargetMutationConfig' in spec ? spec.controllerTargetMutationConfig : undefined;
}

function checkQuantity(value: unknown, field: string, least: 'zero' | 'positive'): Violation | undefined {
  const parsed = parseQuantity(value);
  if ('error' in parsed) return invalid('InvalidTemplate', field, parsed.error);
  const { nano } = parsed.quantity;
  if (nano < 0n || (nano === 0n && least === 'positive')) {
    const allowed = least === 'zero' ? 'must not be negative' : 'must be above zero';
    return invalid(
      'InvalidTemplate',
      field,
      `is ${quote(String(value))}; it ${allowed}; write, for example, 500m or 2Gi`,
    );
  }
  return undefined;
}

const invalid = (code: Violation['code'], field: string, why: string): Violation => ({
  code,
  message: `${field}: ${why}`,
  field,
  status: 422,
});

import type { TemplateSpec } from '../../api/access/kinds.ts';
import type { ControllerTargetMutationConfig } from '../../api/access/mutation-config.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { quote } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { parseQuantity } from '../../kit/quantity.ts';
import type { RbacRule } from '../../rbac/rule-cover.ts';
import { readAccessCommand } from './access-client.ts';
import { verifyDurations } from './duration-choice.ts';
import { grantableViolation, rulesViolation } from './granted-rules.ts';
import { parsePatchOperation, patchViolation } from './patch-operation.ts';
import type { Check, RuleBook, Violation } from './policy.ts';

/** Input of the rules for templates. */
export interface TemplateInput {
  readonly kind: TemplateKind;
  readonly namespace: string;
  readonly name: string;
  readonly spec: TemplateSpec;
  /** The rules that templates may hand out in addition to those of every grant. */
  readonly grantable: readonly RbacRule[];
}

const durationsAreValid: Check<TemplateInput> = ({ spec }) => verifyDurations(spec.accessConfig);

const hasNoSystemGroup: Check<TemplateInput> = ({ spec }) => systemGroupViolation(spec.accessConfig.allowedGroups);

const accessCommandIsValid: Check<TemplateInput> = ({ spec }) => {
  const { accessCommand } = spec.accessConfig;
  if (accessCommand === undefined) return undefined;
  const read = readAccessCommand(accessCommand);
  return 'violation' in read ? read.violation : undefined;
};

const hasTarget: Check<TemplateInput> = ({ kind, spec }) => {
  if (own(spec, 'controllerTargetRef') || (kind === 'PodAccessTemplate' && own(spec, 'podSpec'))) return undefined;
  const needed = kind === 'PodAccessTemplate' ? 'controllerTargetRef or podSpec' : 'controllerTargetRef';
  return invalid('MissingTarget', 'spec', `the template names no target; set ${needed}`);
};

/** The CRD preserves podSpec without validation, so this is its only check at admission. Planning and the API server check the rest. */
const podSpecHasContainers: Check<TemplateInput> = ({ spec }) => {
  const podSpec = own(spec, 'podSpec');
  if (podSpec === undefined) return undefined;
  const containers = own(podSpec, 'containers');
  if (Array.isArray(containers) && containers.length > 0 && containers.every(isRecord)) return undefined;
  return invalid('InvalidPodSpec', 'spec.podSpec.containers', 'needs at least one container, as in a Pod');
};

const patchIsWellFormed: Check<TemplateInput> = ({ spec }) => {
  const operations = mutationOf(spec)?.patchSpecOperations ?? [];
  for (const [index, raw] of operations.entries()) {
    const parsed = parsePatchOperation(raw, index);
    if ('violation' in parsed) return parsed.violation;
    for (const member of ['path', 'from'] as const) {
      const pointer = parsed.operation[member];
      if (pointer && pointer[0] !== 'spec' && pointer[0] !== 'metadata') {
        return patchViolation(
          index,
          raw,
          `${member} must begin with /spec or /metadata, the parts of a pod template`,
          member,
        );
      }
    }
  }
  return undefined;
};

const quantitiesAreValid: Check<TemplateInput> = ({ spec }) => {
  for (const field of ['maxCpu', 'maxMemory', 'maxStorage']) {
    const value = own(spec, field);
    const violation = value === undefined ? undefined : checkQuantity(value, `spec.${field}`, 'positive');
    if (violation) return violation;
  }
  const resources = mutationOf(spec)?.resources;
  for (const list of ['limits', 'requests'] as const) {
    for (const [name, value] of Object.entries(resources?.[list] ?? {})) {
      const violation = checkQuantity(value, `spec.controllerTargetMutationConfig.resources.${list}.${name}`, 'zero');
      if (violation) return violation;
    }
  }
  return undefined;
};

const rulesAreOnThePod: Check<TemplateInput> = ({ spec }) => rulesViolation(spec.accessConfig.rules);

const rulesAreGrantable: Check<TemplateInput> = ({ spec, grantable }) =>
  grantableViolation(spec.accessConfig.rules, grantable);

/** The rule book for a template. */
export const templatePolicy: RuleBook<TemplateInput> = {
  durations: {
    requirement: 'the durations are Go durations, and the default is not above the maximum',
    check: durationsAreValid,
    remedy: () => 'write Go durations from 1s up, such as 30m, with defaultDuration not above maxDuration',
  },
  groups: {
    requirement: 'the allowed groups are groups of people, not groups of Kubernetes itself',
    check: hasNoSystemGroup,
    remedy: () => 'name the groups of the people who may request access; none begins with system:',
  },
  'access-command': {
    requirement: 'the access command is kubectl or oc to the granted pod, with known placeholders only',
    check: accessCommandIsValid,
    remedy: () => 'write, for example, kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
  },
  target: {
    requirement: 'the template names a target',
    check: hasTarget,
    remedy: ({ kind }) =>
      kind === 'PodAccessTemplate' ? 'set controllerTargetRef or podSpec' : 'set controllerTargetRef',
  },
  'pod-spec': {
    requirement: 'the podSpec, if set, has a container',
    check: podSpecHasContainers,
    remedy: () => 'write spec.podSpec as in a Pod',
  },
  patch: {
    requirement: 'the patch operations are RFC 6902 over a pod template',
    check: patchIsWellFormed,
    remedy: () => 'correct the operation that the denial names',
  },
  quantities: {
    requirement: 'caps and resources are quantities',
    check: quantitiesAreValid,
    remedy: () => 'write quantities such as 500m or 2Gi',
  },
  rules: {
    requirement: 'the rules have named verbs on pods and their subresources only',
    check: rulesAreOnThePod,
    remedy: () => 'remove wildcards, other groups, and other resources',
  },
  grantable: {
    requirement: 'the rules are grantable in this installation',
    check: rulesAreGrantable,
    remedy: () => 'ask an administrator to add them to the grantable rules',
  },
};

/** Warnings for the author about settings that are allowed but probably unintended, one sentence each. */
export function templateWarnings({ kind, spec }: TemplateInput): string[] {
  const warnings: string[] = [];
  const { allowedGroups, grantTo } = spec.accessConfig;
  if (allowedGroups.length === 0) {
    warnings.push('spec.accessConfig.allowedGroups is empty: only users who already hold this access can request it');
  }
  if (grantTo === 'AllowedGroups') {
    warnings.push(
      'spec.accessConfig.grantTo is AllowedGroups: one request gives access to every member of the allowed groups, not only to the requester',
    );
  }
  if (kind !== 'PodAccessTemplate') return warnings;
  const hasRef = own(spec, 'controllerTargetRef') !== undefined;
  if (hasRef && own(spec, 'podSpec') !== undefined) {
    warnings.push('spec.controllerTargetRef and spec.podSpec are both set: podSpec is ignored');
  }
  if (!hasRef && mutationOf(spec)) {
    warnings.push(
      'spec.controllerTargetMutationConfig is ignored without spec.controllerTargetRef: write it into podSpec',
    );
  }
  return warnings;
}

function mutationOf(spec: TemplateSpec): ControllerTargetMutationConfig | undefined {
  return 'controllerTargetMutationConfig' in spec ? spec.controllerTargetMutationConfig : undefined;
}

function checkQuantity(value: unknown, field: string, least: 'zero' | 'positive'): Violation | undefined {
  const parsed = parseQuantity(value);
  if ('error' in parsed) return invalid('InvalidQuantity', field, parsed.error);
  const { nano } = parsed.quantity;
  if (nano < 0n || (nano === 0n && least === 'positive')) {
    const allowed = least === 'zero' ? 'must not be negative' : 'must be above zero';
    return invalid('InvalidQuantity', field, `${allowed}, for example 500m or 2Gi`);
  }
  return undefined;
}

const invalid = (code: Violation['code'], field: string, why: string): Violation => ({
  code,
  message: `${field}: ${why}`,
  field,
  status: 422,
});

/** `SystemGroup` for the built-in groups of Kubernetes, which contain whole classes of users, such as all authenticated users. */
export function systemGroupViolation(allowedGroups: readonly string[]): Violation | undefined {
  const group = allowedGroups.find((name) => name.startsWith('system:'));
  if (group === undefined) return undefined;
  return {
    code: 'SystemGroup',
    message:
      `spec.accessConfig.allowedGroups has ${quote(group)}; Kubernetes assigns groups that begin with system: ` +
      'to whole classes of users: name the groups of the people who may request access',
    field: 'spec.accessConfig.allowedGroups',
    status: 403,
  };
}

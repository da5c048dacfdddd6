import { accessOfRequest, type RequestKind, type RequestSpec, type TemplateSpec } from '../../api/access/kinds.ts';
import { quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { chooseDuration } from './duration-choice.ts';
import { fullLimit, type LimitUse, limitViolation } from './limits.ts';
import type { Check, RuleBook } from './policy.ts';
import { systemGroupViolation } from './template-policy.ts';

/** Who asks, as the API server authenticated them. */
export interface Caller {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

export type TemplateState =
  | { readonly found: false }
  | {
      readonly found: true;
      readonly uid: string;
      readonly generation: number;
      readonly spec: TemplateSpec;
      /** `status.ready`; undefined when nobody has looked at the template yet. */
      readonly ready: boolean | undefined;
      /** The generation that `ready` speaks of. */
      readonly observedGeneration: number | undefined;
      /** The condition that is not True, when `ready` is false. */
      readonly failing?: { readonly type: string; readonly reason: string; readonly message: string };
    };

export interface RequestInput {
  readonly operation: 'CREATE' | 'UPDATE';
  readonly kind: RequestKind;
  readonly namespace: string;
  readonly name: string;
  readonly templateName: string;
  /** At admission the caller of the API; in the controller the stamped requester. */
  readonly caller: Caller;
  readonly spec: RequestSpec;
  /** UPDATE only. */
  readonly oldSpec?: RequestSpec;
  readonly template: TemplateState;
  /** A SubjectAccessReview says that the caller may already do what the template gives; asked only when no group matches. */
  readonly alreadyHolds: boolean;
  /** At admission, as far as it is known there; the controller counts when it gives the place away. */
  readonly limits?: readonly LimitUse[];
}

/** True when the caller is in one of the groups; an empty list allows nobody. */
export function isEligibleByGroup(caller: Caller, allowedGroups: readonly string[]): boolean {
  return caller.groups.some((group) => allowedGroups.includes(group));
}

const hasIdentity: Check<RequestInput> = ({ caller }) => {
  if (caller.username && caller.username !== 'system:anonymous' && !caller.groups.includes('system:unauthenticated')) {
    return undefined;
  }
  return {
    code: 'MissingIdentity',
    message: 'access is granted to a person, and this request has no authenticated user; log in and create it again',
    field: 'spec.requester',
    status: 403,
  };
};

/** The mutating webhook writes the requester; without its work the controller would have nobody to grant to. */
const requesterIsCaller: Check<RequestInput> = ({ caller, spec }) => {
  const named = own(own(spec, 'requester'), 'username');
  if (named === caller.username) return undefined;
  return {
    code: 'MissingIdentity',
    message:
      `spec.requester must name ${quote(caller.username)}, who creates the request, and names ` +
      `${typeof named === 'string' ? quote(named) : 'nobody'}; the mutating webhook of drawbridge sets it: check that it is installed`,
    field: 'spec.requester',
    status: 403,
  };
};

/** The controller judges by the stamp alone, later and perhaps by a changed template: it must not claim more than is true now. */
const requesterClaimsNothing: Check<RequestInput> = ({ caller, spec }) => {
  const claimed = own(own(spec, 'requester'), 'groups');
  const known = new Set(caller.groups);
  const foreign = Array.isArray(claimed) ? claimed.find((group) => !known.has(group)) : undefined;
  if (foreign === undefined) return undefined;
  return {
    code: 'MissingIdentity',
    message:
      `spec.requester.groups has ${quote(String(foreign))}, and ${quote(caller.username)} is not in that group; ` +
      'the mutating webhook of drawbridge sets the field: check that it is installed',
    field: 'spec.requester.groups',
    status: 403,
  };
};

const templateExists: Check<RequestInput> = ({ kind, namespace, templateName, template }) => {
  if (template.found) return undefined;
  const templateKind = accessOfRequest(kind).template.resource.kind;
  return {
    code: 'TemplateNotFound',
    message:
      `${templateKind} ${quote(templateName)} does not exist in namespace ${quote(namespace)}; ` +
      `kubectl get ${templateKind.toLowerCase()}s -n ${namespace} lists those that do`,
    field: 'spec.templateName',
    status: 404,
  };
};

/** What is known to fail now would fail again; a template that nobody has looked at in its present form gets the benefit of the doubt. */
const templateReady: Check<RequestInput> = ({ templateName, template }) => {
  if (!template.found || template.ready !== false || template.observedGeneration !== template.generation)
    return undefined;
  const why = template.failing
    ? `${template.failing.type} is not True: ${template.failing.message}`
    : 'it says no more';
  return {
    code: 'TemplateNotReady',
    message: `template ${templateName} is not ready: ${why}`,
    field: 'spec.templateName',
    status: 403,
  };
};

/** Of a template that was written before this was refused. */
const templateNamesTeams: Check<RequestInput> = ({ template }) =>
  template.found ? systemGroupViolation(template.spec.accessConfig.allowedGroups) : undefined;

const callerIsEligible: Check<RequestInput> = ({ caller, templateName, template, alreadyHolds }) => {
  if (!template.found) return undefined;
  const { allowedGroups } = template.spec.accessConfig;
  if (isEligibleByGroup(caller, allowedGroups) || alreadyHolds) return undefined;
  return {
    code: 'NotEligible',
    message: `user ${shown(caller.username)} is in ${list(caller.groups)}; template ${templateName} allows ${list(allowedGroups)}`,
    field: 'spec.templateName',
    status: 403,
  };
};

const durationIsValid: Check<RequestInput> = ({ spec, template }) => {
  if (!template.found) return undefined;
  const chosen = chooseDuration(spec.duration, template.spec.accessConfig);
  return 'code' in chosen ? chosen : undefined;
};

const targetPodIsAName: Check<RequestInput> = ({ kind, spec }) => {
  const targetPod = own(spec, 'targetPod');
  if (kind !== 'ExecAccessRequest' || targetPod === undefined) return undefined;
  if (isObjectName(targetPod)) return undefined;
  return {
    code: 'InvalidTargetPod',
    message: `spec.targetPod must be the name of a pod, such as web-5d9c7b4f-x2x4q, not ${typeof targetPod === 'string' ? quote(targetPod) : `a ${typeof targetPod}`}`,
    field: 'spec.targetPod',
    status: 422,
  };
};

const isNotRevoked: Check<RequestInput> = ({ spec }) => {
  if (own(spec, 'revoked') !== true) return undefined;
  return {
    code: 'AlreadyRevoked',
    message: 'spec.revoked is true, so access would end before it begins; create the request without it',
    field: 'spec.revoked',
    status: 422,
  };
};

/** Early, for those who wait for an answer: grants that are being decided elsewhere at this moment do not show yet. */
const hasRoom: Check<RequestInput> = ({ limits = [] }) => limitViolation(limits);

const knowsTemplate = ({ template }: RequestInput): boolean => template.found;

/** What has to hold at the moment of the grant too, when nothing the webhook saw can be relied on any more. */
export const grantPolicy: RuleBook<RequestInput> = {
  identity: {
    requirement: 'the caller is logged in',
    check: hasIdentity,
    remedy: () => 'log in and create the request again',
  },
  template: {
    requirement: 'the template exists in the namespace of the request',
    check: templateExists,
    remedy: () => 'name a template of this namespace in spec.templateName',
  },
  'template-ready': {
    requirement: 'the template is ready',
    check: templateReady,
    remedy: ({ template }) =>
      template.found && template.failing
        ? `wait until condition ${template.failing.type} of the template is True`
        : 'wait until the template is ready',
    applies: knowsTemplate,
  },
  'template-groups': {
    requirement: 'the template names teams, no groups of Kubernetes itself',
    check: templateNamesTeams,
    remedy: () => 'have the groups that begin with system: taken out of the template',
    applies: knowsTemplate,
  },
  eligible: {
    requirement: 'the caller is in an allowed group, or may do anyway in the namespace what the template gives',
    check: callerIsEligible,
    remedy: ({ template }) =>
      template.found ? `join one of ${list(template.spec.accessConfig.allowedGroups)}` : 'name a template that exists',
    applies: knowsTemplate,
  },
  duration: {
    requirement: 'the duration can be granted',
    check: durationIsValid,
    remedy: () => 'write a Go duration from 1s up, such as 30m, or leave spec.duration out',
    applies: knowsTemplate,
  },
  'target-pod': {
    requirement: 'the target pod, if one is named, has the name of a pod',
    check: targetPodIsAName,
    remedy: () => 'name a running pod of the workload, or leave spec.targetPod out',
  },
  'not-revoked': {
    requirement: 'the request is not revoked',
    check: isNotRevoked,
    remedy: () => 'leave spec.revoked out',
  },
};

const requesterRemedy = (): string =>
  'leave spec.requester out; the mutating webhook of drawbridge has to be installed';

/** The rule book for a new request. */
export const createRequestPolicy: RuleBook<RequestInput> = {
  requester: { requirement: 'spec.requester names the caller', check: requesterIsCaller, remedy: requesterRemedy },
  ...grantPolicy,
  'requester-groups': {
    requirement: 'spec.requester claims no group that the caller is not in',
    check: requesterClaimsNothing,
    remedy: requesterRemedy,
  },
  limits: {
    requirement: 'one more grant stays within the limits of user, template and namespace',
    check: hasRoom,
    remedy: ({ limits = [] }) => {
      const freeAt = fullLimit(limits)?.freeAt;
      return freeAt === undefined ? 'give access back' : `give access back, or ask again at ${freeAt}`;
    },
    applies: knowsTemplate,
  },
};

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Whether a Pod, a ServiceAccount or a ReplicaSet may have that name; what refers to one may hold anything. */
export const isObjectName = (name: unknown): name is string =>
  typeof name === 'string' && name.length <= 253 && subdomain.test(name);

const MAX_SHOWN = 20;

/** `[devs, sre]`; long lists are cut, and names cannot break out of the line. */
function list(names: readonly string[]): string {
  const more = names.length > MAX_SHOWN ? `, and ${names.length - MAX_SHOWN} more` : '';
  return `[${names.slice(0, MAX_SHOWN).map(shown).join(', ')}${more}]`;
}

/** A name as it is, or quoted where it could break out of the line. */
export const shown = (name: string): string => (/^[\w@.:/+-]{1,128}$/.test(name) ? name : quote(name));

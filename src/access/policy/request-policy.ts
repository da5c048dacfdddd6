import type { Ended } from '../../api/access/ended.ts';
import {
  accessOfRequest,
  accessOfTemplate,
  type RequestKind,
  type RequestSpec,
  type TemplateSpec,
} from '../../api/access/kinds.ts';
import { gatewayCondition, type TemplateKind } from '../../api/access/names.ts';
import { quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { chooseDuration } from './duration-choice.ts';
import {
  durationBoundsOf,
  emergencyViolation,
  type OverdueReview,
  overdueViolation,
  reasonConfigOf,
} from './emergency-policy.ts';
import { templateGroupsViolations } from './group-policy.ts';
import { fullLimit, type LimitUse, limitViolation } from './limits.ts';
import { isObjectName, listNames, showName } from './names.ts';
import { startViolation, templateSettingsViolation } from './people-policy.ts';
import type { Check, RuleBook } from './policy.ts';
import { reasonText, reasonViolation } from './reason.ts';

/** As the API server authenticated them. */
export interface Caller {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

/** The template that a request names. */
export type TemplateState =
  /** `otherKind`: a template of this kind has the name, but not for requests of this kind. */
  | { readonly found: false; readonly otherKind?: TemplateKind }
  | {
      readonly found: true;
      readonly uid: string;
      readonly generation: number;
      readonly spec: TemplateSpec;
      /** Whether all conditions but AccessPlanValid are True; undefined until observed. */
      readonly ready: boolean | undefined;
      readonly observedGeneration: number | undefined;
      /** The first False condition other than AccessPlanValid, Ready, Reconciling, and Stalled. */
      readonly failing?: { readonly type: string; readonly reason: string; readonly message: string };
      /** At the last check of this generation. The plan of a request may succeed. */
      readonly unplannable?: { readonly code: string; readonly message: string };
    };

export interface RequestInput {
  readonly operation: 'CREATE' | 'UPDATE';
  readonly kind: RequestKind;
  readonly namespace: string;
  readonly name: string;
  readonly templateName: string;
  /** The caller of the API at admission; in the controller, the requester. */
  readonly caller: Caller;
  readonly spec: RequestSpec;
  /** Epoch ms; at admission, now. */
  readonly askedAtMs: number;
  /** On an UPDATE: how the request ended. */
  readonly ended?: Ended | undefined;
  readonly oldSpec?: RequestSpec;
  readonly template: TemplateState;
  /** Holds `permissionsToHold` of the template. False without a check, as in an emergency. */
  readonly alreadyHolds: boolean;
  /** Of the caller's earlier emergency access, for an emergency. */
  readonly overdueReview?: OverdueReview | undefined;
  /** At admission, from this replica's stores. The leader counts again. */
  readonly limits?: readonly LimitUse[];
}

export function isEligibleByGroup(caller: Caller, allowedGroups: readonly string[]): boolean {
  return caller.groups.some((group) => allowedGroups.includes(group));
}

const hasIdentity: Check<RequestInput> = ({ caller }) => {
  if (caller.username && caller.username !== 'system:anonymous' && !caller.groups.includes('system:unauthenticated')) {
    return undefined;
  }
  return {
    code: 'MissingIdentity',
    message:
      'the request has no authenticated user; access is granted only to users who logged in: log in and create it again',
    field: 'spec.requester',
    status: 403,
  };
};

/** The mutating webhook writes the requester, and the controller grants access to that user. */
const requesterIsCaller: Check<RequestInput> = ({ caller, spec }) => {
  const username = own(own(spec, 'requester'), 'username');
  if (username === caller.username) return undefined;
  return {
    code: 'MissingIdentity',
    message:
      `spec.requester names ${typeof username === 'string' ? quote(username) : 'no user'}; it must name ${quote(caller.username)}, ` +
      'the caller. The mutating webhook of drawbridge sets the field: check that the webhook is registered',
    field: 'spec.requester',
    status: 403,
  };
};

/** The controller decides by spec.requester alone, so it must name no group of others. */
const requesterClaimsNoForeignGroup: Check<RequestInput> = ({ caller, spec }) => {
  const claimed = own(own(spec, 'requester'), 'groups');
  const callerGroups = new Set(caller.groups);
  const foreign = Array.isArray(claimed) ? claimed.find((group) => !callerGroups.has(group)) : undefined;
  if (foreign === undefined) return undefined;
  return {
    code: 'MissingIdentity',
    message:
      `spec.requester.groups has ${quote(String(foreign))}, and ${quote(caller.username)} is not in that group; ` +
      'the mutating webhook of drawbridge sets the field: check that the webhook is registered',
    field: 'spec.requester.groups',
    status: 403,
  };
};

const templateExists: Check<RequestInput> = ({ kind, namespace, templateName, template }) => {
  if (template.found) return undefined;
  const templateKind = accessOfRequest(kind).template.resource.kind;
  const remedy = template.otherKind
    ? `template ${templateName} is of kind ${template.otherKind}; create a request of kind ${requestKindFor(template.otherKind)}`
    : `to list those that do: kubectl get ${templateKind.toLowerCase()}s -n ${namespace}`;
  return {
    code: 'TemplateNotFound',
    message: `${templateKind} ${quote(templateName)} does not exist in namespace ${quote(namespace)}; ${remedy}`,
    field: 'spec.templateName',
    status: 404,
  };
};

const requestKindFor = (kind: TemplateKind): RequestKind => accessOfTemplate(kind).request.resource.kind;

/** If the reconciler has not observed the current generation, the leader waits for it. */
const templateReady: Check<RequestInput> = ({ templateName, template }) => {
  if (!template.found || template.ready !== false || template.observedGeneration !== template.generation)
    return undefined;
  const why = template.failing
    ? withCorrecter(template.failing)
    : 'its status has no failing condition; wait until the server updates the status';
  return {
    code: 'TemplateNotReady',
    message: `template ${templateName} is not ready: ${why}`,
    field: 'spec.templateName',
    status: 403,
  };
};

type FailingCondition = NonNullable<Extract<TemplateState, { readonly found: true }>['failing']>;

const failingText = ({ type, message }: FailingCondition): string => `${type} is not True: ${message}`;

/** Their messages say who can correct the template, and end with the command. */
const authorCodes: readonly string[] = ['AuthorUnknown', 'AuthorLacksRights', 'PoliciesMissing'];

/** Undefined if the message of the condition names that person. */
const correcterOf = ({ type, reason }: FailingCondition): string | undefined => {
  if (authorCodes.includes(reason)) return undefined;
  return type === gatewayCondition ? 'an administrator' : 'the author of the template';
};

function withCorrecter(failing: FailingCondition): string {
  const correcter = correcterOf(failing);
  return `${failingText(failing)}${correcter === undefined ? '' : `. Ask ${correcter} to correct it`}`;
}

function failingRemedy(failing: FailingCondition): string {
  const correcter = correcterOf(failing);
  return `${correcter === undefined ? '' : `ask ${correcter} to `}correct this: ${failingText(failing)}`;
}

/** For templates stored without the webhook, which denies groups of Kubernetes itself. */
const templateHasNoSystemGroup: Check<RequestInput> = ({ template }) =>
  template.found ? templateGroupsViolations(template.spec.accessConfig)[0] : undefined;

/** For templates stored without the webhook, which denies invalid settings. */
const templateSettingsAreValid: Check<RequestInput> = ({ template }) =>
  template.found ? templateSettingsViolation(template.spec.accessConfig) : undefined;

/** For an emergency, `emergencyIsAllowed` checks other groups. */
const callerIsEligible: Check<RequestInput> = ({ caller, spec, templateName, template, alreadyHolds }) => {
  if (!template.found || spec.emergency) return undefined;
  const { allowedGroups } = template.spec.accessConfig;
  if (isEligibleByGroup(caller, allowedGroups) || alreadyHolds) return undefined;
  return {
    code: 'NotEligible',
    message: `user ${showName(caller.username)} is in ${listNames(caller.groups)}; template ${templateName} ${allowedGroups.length === 0 ? 'allows no group' : `allows ${listNames(allowedGroups)}`}; ${groupsRemedy(allowedGroups, 'ask for membership in one of these groups')}, or name another template`,
    field: 'spec.templateName',
    status: 403,
  };
};

/** In no identity provider, but perhaps in templates stored without the webhook. */
const hasOuterSpace = (group: string): boolean => group !== group.trim();

/** A clause. `join`: what to do if a person can be in one of the groups. */
function groupsRemedy(allowedGroups: readonly string[], join: string): string {
  if (allowedGroups.length === 0)
    return 'ask the author of the template to add one of your groups to spec.accessConfig.allowedGroups';
  const impossible = allowedGroups.filter(hasOuterSpace);
  if (impossible.length === 0) return join;
  const correct = `ask the author of the template to remove the space from ${listNames(impossible)}, which no one can be in (InvalidGroup)`;
  return impossible.length < allowedGroups.length ? `${join}, or ${correct}` : correct;
}

const durationIsValid: Check<RequestInput> = ({ spec, template }) => {
  if (!template.found) return undefined;
  const chosen = chooseDuration(spec.duration, durationBoundsOf(spec, template.spec.accessConfig));
  return 'code' in chosen ? chosen : undefined;
};

const emergencyIsAllowed = ({ caller, spec, template }: RequestInput) =>
  template.found ? emergencyViolation(spec, caller.groups, template.spec.accessConfig) : undefined;

const noReviewIsOverdue: Check<RequestInput> = ({ spec, overdueReview }) => overdueViolation(spec, overdueReview);

const reasonIsGiven: Check<RequestInput> = ({ spec, template }) =>
  template.found ? reasonViolation(spec.reason, reasonConfigOf(spec, template.spec.accessConfig)) : undefined;

const startIsAllowed: Check<RequestInput> = ({ spec, template, askedAtMs }) =>
  template.found ? startViolation(spec.startAt, template.spec.accessConfig.start, askedAtMs) : undefined;

const targetPodIsName: Check<RequestInput> = ({ kind, spec }) => {
  const targetPod = own(spec, 'targetPod');
  if (kind !== 'ExecAccessRequest' || targetPod === undefined) return undefined;
  if (isObjectName(targetPod)) return undefined;
  return {
    code: 'InvalidTargetPod',
    message: `spec.targetPod must be the name of a pod, such as web-5d9c7b4f-x2x4q, not ${typeof targetPod === 'string' ? quote(targetPod) : `a value of type ${typeof targetPod}`}`,
    field: 'spec.targetPod',
    status: 422,
  };
};

const isNotRevoked: Check<RequestInput> = ({ spec }) => {
  if (own(spec, 'revoked') !== true) return undefined;
  return {
    code: 'InvalidRequest',
    message: 'spec.revoked is true, so access would end before it starts; create the request without it',
    field: 'spec.revoked',
    status: 422,
  };
};

/** Such as in a copy of an older request: a claim or an extension would precede the grant. */
const setsNoUpdateField: Check<RequestInput> = ({ spec }) => {
  const isSet = {
    claimed: spec.claimed === true,
    extensions: (spec.extensions?.length ?? 0) > 0,
    revokedReason: spec.revokedReason !== undefined,
  };
  const field = Object.entries(isSet).find(([, value]) => value)?.[0];
  if (field === undefined) return undefined;
  return {
    code: 'InvalidRequest',
    message: `spec.${field} is set; a new request cannot set it; create the request without it`,
    field: `spec.${field}`,
    status: 422,
  };
};

/** Denies early. The leader counts again, because the stores of other replicas may lag behind. */
const isWithinLimits: Check<RequestInput> = ({ limits = [] }) => limitViolation(limits);

function reasonRemedy({ spec, template }: RequestInput): string {
  const config = template.found ? reasonConfigOf(spec, template.spec.accessConfig) : undefined;
  return config ? `write in spec.reason ${reasonText(config)}` : 'write in spec.reason why you need access';
}

const templateIsFound = ({ template }: RequestInput): boolean => template.found;

/** The controller checks these again: the state may have changed since admission. */
export const grantPolicy: RuleBook<RequestInput> = {
  identity: {
    requirement: 'the caller is logged in',
    check: hasIdentity,
    remedy: () => 'log in and create the request again',
  },
  template: {
    requirement: 'a template of this name, for requests of this kind, exists in the namespace',
    check: templateExists,
    remedy: ({ templateName, template }) =>
      !template.found && template.otherKind
        ? `create a request of kind ${requestKindFor(template.otherKind)}, because template ${templateName} is of kind ${template.otherKind}`
        : 'name a template of this namespace in spec.templateName',
  },
  'template-ready': {
    requirement: 'the template is ready',
    check: templateReady,
    remedy: ({ template }) =>
      template.found && template.failing ? failingRemedy(template.failing) : 'wait until the template is ready',
    applies: templateIsFound,
  },
  'template-groups': {
    requirement: 'the template names groups of people, not groups of Kubernetes itself',
    check: templateHasNoSystemGroup,
    remedy: () => 'ask the author to remove the groups that begin with system: from the template',
    applies: templateIsFound,
  },
  'template-people': {
    requirement: 'grantTo, session, reason, and start.windows of the template are valid',
    check: templateSettingsAreValid,
    remedy: (input) =>
      `ask the author to correct ${templateSettingsAreValid(input)?.field ?? 'these fields'} of the template`,
    applies: templateIsFound,
  },
  emergency: {
    requirement: 'the template lets the caller use emergency access, if spec.emergency is set',
    check: emergencyIsAllowed,
    remedy: (input) => emergencyIsAllowed(input)?.remedy ?? 'omit spec.emergency',
    applies: templateIsFound,
  },
  review: {
    requirement: 'no review of an emergency of the caller through this template is overdue',
    check: noReviewIsOverdue,
    remedy: () => 'ask another person with the verb approve on the template to review the earlier emergency',
  },
  eligible: {
    requirement: 'the caller is in an allowed group, or already holds in the namespace what the template gives',
    check: callerIsEligible,
    remedy: ({ template }) => {
      if (!template.found) return 'name a template that exists';
      const { allowedGroups } = template.spec.accessConfig;
      const possible = allowedGroups.filter((name) => !hasOuterSpace(name));
      return groupsRemedy(allowedGroups, `join one of ${listNames(possible)}`);
    },
    applies: templateIsFound,
  },
  duration: {
    requirement: 'the duration can be granted',
    check: durationIsValid,
    remedy: (input) =>
      durationIsValid(input)?.field === 'spec.duration'
        ? 'write a Go duration from 1s up, such as 30m, or leave spec.duration out'
        : 'ask the author of the template to correct its durations',
    applies: templateIsFound,
  },
  reason: {
    requirement: 'spec.reason is what the template asks for',
    check: reasonIsGiven,
    remedy: reasonRemedy,
    applies: templateIsFound,
  },
  start: {
    requirement: 'the template allows spec.startAt, if set',
    check: startIsAllowed,
    remedy: () => 'omit spec.startAt to start as soon as possible',
    applies: templateIsFound,
  },
  'target-pod': {
    requirement: 'spec.targetPod, if set, is a running pod of the workload when access opens',
    check: targetPodIsName,
    remedy: () => 'name a running pod of the workload, or leave spec.targetPod out',
    // The leader looks for the pod when access opens.
    applies: ({ spec }) => own(spec, 'targetPod') === undefined,
  },
  'not-revoked': {
    requirement: 'the request is not revoked',
    check: isNotRevoked,
    remedy: () => 'leave spec.revoked out',
  },
};

const requesterRemedy = (): string =>
  'leave spec.requester out, and check that the mutating webhook of drawbridge is installed';

export const createRequestPolicy: RuleBook<RequestInput> = {
  requester: { requirement: 'spec.requester names the caller', check: requesterIsCaller, remedy: requesterRemedy },
  ...grantPolicy,
  'requester-groups': {
    requirement: 'spec.requester claims no group that the caller is not in',
    check: requesterClaimsNoForeignGroup,
    remedy: requesterRemedy,
  },
  'later-fields': {
    requirement: 'no field is set that can be set only later',
    check: setsNoUpdateField,
    remedy: () => 'leave claimed, extensions, and revokedReason out',
  },
  limits: {
    requirement: 'one more grant stays within the limits of user, template, and namespace',
    check: isWithinLimits,
    remedy: ({ limits = [] }) => {
      const { freeAt, canMove } = fullLimit(limits) ?? {};
      const later = canMove ? ', or later if a holder extends access' : '';
      return freeAt === undefined
        ? 'revoke an open request'
        : `revoke an open request, or create this one at ${freeAt}${later}`;
    },
    applies: templateIsFound,
  },
};

import { isDeepStrictEqual } from 'node:util';
import type { ExecAccessRequestSpec } from '../../api/access/exec-access-request.ts';
import type { ExecAccessTemplateSpec } from '../../api/access/exec-access-template.ts';
import type { PodAccessRequestSpec } from '../../api/access/pod-access-request.ts';
import type { PodAccessTemplateSpec } from '../../api/access/pod-access-template.ts';
import { quote } from '../../kit/errors.ts';
import { copyJson, isRecord, own } from '../../kit/json-value.ts';
import { chooseDuration } from './duration-choice.ts';
import { type LimitUse, limitViolation } from './limits.ts';
import type { Check, Violation } from './policy.ts';

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
      readonly spec: PodAccessTemplateSpec | ExecAccessTemplateSpec;
      /** `status.ready`; undefined when nobody has looked at the template yet. */
      readonly ready: boolean | undefined;
      /** The generation that `ready` speaks of. */
      readonly observedGeneration: number | undefined;
      /** The condition that is not True, when `ready` is false. */
      readonly failing?: { readonly type: string; readonly reason: string; readonly message: string };
    };

export interface RequestInput {
  readonly operation: 'CREATE' | 'UPDATE';
  readonly kind: 'PodAccessRequest' | 'ExecAccessRequest';
  readonly namespace: string;
  readonly name: string;
  readonly templateName: string;
  /** At admission the caller of the API; in the controller the stamped requester. */
  readonly caller: Caller;
  readonly spec: PodAccessRequestSpec | ExecAccessRequestSpec;
  /** UPDATE only. */
  readonly oldSpec?: PodAccessRequestSpec | ExecAccessRequestSpec;
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
  const stamped = own(own(spec, 'requester'), 'username');
  if (stamped === caller.username) return undefined;
  return {
    code: 'MissingIdentity',
    message:
      `spec.requester must name ${quote(caller.username)}, who creates the request, and names ` +
      `${typeof stamped === 'string' ? quote(stamped) : 'nobody'}; the mutating webhook of drawbridge sets it: check that it is installed`,
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
  const templateKind = templateKindOf(kind);
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
  if (typeof targetPod === 'string' && targetPod.length <= 253 && POD_NAME.test(targetPod)) return undefined;
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

const requesterIsUnchanged: Check<RequestInput> = ({ spec, oldSpec }) => {
  if (isSame(own(spec, 'requester'), own(oldSpec, 'requester'))) return undefined;
  return {
    code: 'RequesterImmutable',
    message: 'spec.requester tells who created the request and cannot change; create a request of your own instead',
    field: 'spec.requester',
    status: 403,
  };
};

/** Giving access back is the only change, and there is no way back from it. Unset means false. */
const staysRevoked: Check<RequestInput> = ({ spec, oldSpec }) => {
  const [before, now] = [own(oldSpec, 'revoked'), own(spec, 'revoked')];
  return before === true && now !== true ? specImmutable('revoked', before, now) : undefined;
};

const specIsUnchanged: Check<RequestInput> = ({ spec, oldSpec }) => {
  const fields = new Set([...Object.keys(oldSpec ?? {}), ...Object.keys(spec)]);
  for (const field of fields) {
    const before = own(oldSpec, field);
    const now = own(spec, field);
    if (field !== 'requester' && field !== 'revoked' && !isSame(before, now)) return specImmutable(field, before, now);
  }
  return undefined;
};

/** What has to hold at the moment of the grant too, when nothing the webhook saw can be relied on any more. */
export const grantPolicy: readonly Check<RequestInput>[] = [
  hasIdentity,
  templateExists,
  templateReady,
  callerIsEligible,
  durationIsValid,
  targetPodIsAName,
  isNotRevoked,
];

/** The rule book for a new request. */
export const createRequestPolicy: readonly Check<RequestInput>[] = [
  requesterIsCaller,
  ...grantPolicy,
  requesterClaimsNothing,
  hasRoom,
];

/**
 * The rule book for a changed request: whatever was asked for stays as it was, and whoever may update the request may revoke it.
 * Metadata and status are free.
 */
export const updateRequestPolicy: readonly Check<RequestInput>[] = [
  requesterIsUnchanged,
  staysRevoked,
  specIsUnchanged,
];

const POD_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const templateKindOf = (kind: RequestInput['kind']): 'PodAccessTemplate' | 'ExecAccessTemplate' =>
  kind === 'PodAccessRequest' ? 'PodAccessTemplate' : 'ExecAccessTemplate';

function specImmutable(field: string, before: unknown, now: unknown): Violation {
  return {
    code: 'SpecImmutable',
    message:
      `spec.${shown(field)} was ${brief(before)} and cannot become ${brief(now)}: a request keeps what it asked for; ` +
      'delete it and create another',
    field: `spec.${field}`,
    status: 422,
  };
}

/** Equal as JSON: prototypes do not count. What is not JSON is never equal. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  const [copyOfA, copyOfB] = [copyJson(a), copyJson(b)];
  return 'value' in copyOfA && 'value' in copyOfB && isDeepStrictEqual(copyOfA.value, copyOfB.value);
}

function brief(value: unknown): string {
  if (value === undefined) return 'unset';
  if (typeof value === 'string') return quote(value);
  return isRecord(value) || Array.isArray(value) ? 'another value' : String(value);
}

const MOST_SHOWN = 20;

/** `[devs, sre]`; long lists are cut, and names cannot break out of the line. */
function list(names: readonly string[]): string {
  const more = names.length > MOST_SHOWN ? `, and ${names.length - MOST_SHOWN} more` : '';
  return `[${names.slice(0, MOST_SHOWN).map(shown).join(', ')}${more}]`;
}

const shown = (name: string): string => (/^[\w@.:/+-]{1,128}$/.test(name) ? name : quote(name));

import { isDeepStrictEqual } from 'node:util';
import { extendText, mutableFields, mutableText } from '../../api/access/request-spec.ts';
import { quote } from '../../kit/errors.ts';
import { copyJson, isRecord, own } from '../../kit/json-value.ts';
import { showName } from './names.ts';
import type { Check, RuleBook, Violation } from './policy.ts';
import type { RequestInput } from './request-policy.ts';

const requesterIsUnchanged: Check<RequestInput> = ({ spec, oldSpec }) => {
  if (isSame(own(spec, 'requester'), own(oldSpec, 'requester'))) return undefined;
  return {
    code: 'SpecImmutable',
    message: 'spec.requester names who created the request and cannot change; create a request of your own instead',
    field: 'spec.requester',
    status: 403,
  };
};

const staysRevoked: Check<RequestInput> = ({ spec, oldSpec }) => {
  const [before, now] = [own(oldSpec, 'revoked'), own(spec, 'revoked')];
  return before === true && now !== true ? specImmutable('revoked', before, now) : undefined;
};

/** The journal would record a revocation of access that had already ended. */
const hasNotEnded: Check<RequestInput> = ({ kind, namespace, name, spec, oldSpec, ended }) => {
  if (!ended || own(spec, 'revoked') !== true || own(oldSpec, 'revoked') === true) return undefined;
  return {
    code: 'WrongState',
    message:
      `the request ended at ${ended.at} (${ended.how}), so there is nothing to revoke; to remove it before ${ended.keptUntil}: ` +
      `kubectl delete ${kind.toLowerCase()} ${name} -n ${namespace}`,
    field: 'spec.revoked',
    status: 403,
  };
};

/** So that the journal names the author of the reason. */
const reasonComesWithRevocation: Check<RequestInput> = ({ spec, oldSpec }) => {
  const [before, now] = [own(oldSpec, 'revokedReason'), own(spec, 'revokedReason')];
  if (isSame(before, now) || (own(spec, 'revoked') === true && own(oldSpec, 'revoked') !== true)) return undefined;
  const remedy =
    own(oldSpec, 'revoked') === true
      ? 'the request is revoked already, so its reason cannot change'
      : 'set both together';
  return {
    code: 'SpecImmutable',
    message: `spec.revokedReason changes only in the update that sets spec.revoked to true; ${remedy}`,
    field: 'spec.revokedReason',
    status: 422,
  };
};

/** Other rules check these. */
const otherFields: ReadonlySet<string> = new Set(['requester', ...mutableFields]);

const specIsUnchanged: Check<RequestInput> = ({ spec, oldSpec }) => {
  const fields = new Set([...Object.keys(oldSpec ?? {}), ...Object.keys(spec)]);
  for (const field of fields) {
    const before = own(oldSpec, field);
    const now = own(spec, field);
    if (!otherFields.has(field) && !isSame(before, now)) return specImmutable(field, before, now);
  }
  return undefined;
};

/** A user who can update the request can revoke it. `changePolicy` has claims and extensions. */
export const updateRequestPolicy: RuleBook<RequestInput> = {
  'requester-kept': {
    requirement: 'spec.requester stays as it is',
    check: requesterIsUnchanged,
    remedy: () => 'create a request of your own',
  },
  'revoked-kept': {
    requirement: 'a revoked request stays revoked',
    check: staysRevoked,
    remedy: () => 'create another request',
  },
  'not-over': {
    requirement: 'spec.revoked is set only before the request ends',
    check: hasNotEnded,
    remedy: () => 'delete the request',
  },
  'revoked-reason': {
    requirement: 'spec.revokedReason changes only together with spec.revoked',
    check: reasonComesWithRevocation,
    remedy: () => 'set spec.revoked and spec.revokedReason in one update',
  },
  'spec-kept': {
    requirement: 'the other fields of the spec stay as they are',
    check: specIsUnchanged,
    remedy: () => 'to extend open access, if the template allows it, use spec.extensions; else create another request',
  },
};

function remedyFor(field: string): string {
  if (field === 'revoked') return 'a revoked request stays revoked; create another request';
  return `${mutableText}; ${field === 'duration' ? `${extendText}; otherwise, ` : ''}create another request`;
}

function specImmutable(field: string, before: unknown, now: unknown): Violation {
  return {
    code: 'SpecImmutable',
    message: `spec.${showName(field)} was ${brief(before)} and cannot become ${brief(now)}: ${remedyFor(field)}`,
    field: `spec.${field}`,
    status: 422,
  };
}

/** As JSON. A value that is not JSON equals only itself. */
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

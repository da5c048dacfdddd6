import { isDeepStrictEqual } from 'node:util';
import { quote } from '../../kit/errors.ts';
import { copyJson, isRecord, own } from '../../kit/json-value.ts';
import type { Check, RuleBook, Violation } from './policy.ts';
import { type RequestInput, shown } from './request-policy.ts';

const requesterIsUnchanged: Check<RequestInput> = ({ spec, oldSpec }) => {
  if (isSame(own(spec, 'requester'), own(oldSpec, 'requester'))) return undefined;
  return {
    code: 'RequesterImmutable',
    message: 'spec.requester names who created the request and cannot change; create a request of your own instead',
    field: 'spec.requester',
    status: 403,
  };
};

/** Denies an update that removes or resets `spec.revoked` once it is true. */
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

/**
 * The rule book for an update of a request. The spec is immutable, except that any user who can update the request can set `spec.revoked`.
 * The rules do not restrict metadata and status.
 */
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
  'spec-kept': {
    requirement: 'the spec stays as it is, except for spec.revoked',
    check: specIsUnchanged,
    remedy: () => 'delete the request and create another',
  },
};

function specImmutable(field: string, before: unknown, now: unknown): Violation {
  return {
    code: 'SpecImmutable',
    message:
      `spec.${shown(field)} was ${brief(before)} and cannot become ${brief(now)}: the spec of a request is immutable; ` +
      'delete the request and create another',
    field: `spec.${field}`,
    status: 422,
  };
}

/** Whether two values are equal as JSON. A value that is not JSON equals only itself. */
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

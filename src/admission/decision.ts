import type { Violation } from '../access/policy/policy.ts';
import type { FieldError } from '../api/schema/read.ts';
import type { AuditRecord } from '../audit/record.ts';
import type { Answer, Review } from './codec.ts';
import type { AdmissionPatchOp } from './json-patch.ts';

/** Why a webhook denies a request, for the caller. Server faults have a 5xx status. */
export interface Denial extends Omit<Violation, 'status'> {
  readonly status: number;
}

/** The result of a handler. */
export interface Decision {
  /** Absent: allowed. */
  readonly denial?: Denial;
  readonly patch?: readonly AdmissionPatchOp[];
  readonly warnings?: readonly string[];
  /** Fields of the audit line besides `who`, `what`, and the verdict. */
  readonly details?: Pick<
    AuditRecord,
    'template' | 'request' | 'pod' | 'container' | 'interactive' | 'component' | 'run' | 'code' | 'message'
  >;
  /** All groups that allow this request. The audit line keeps those that the caller is a member of. */
  readonly decidingGroups?: readonly string[];
  /** UID of the pod on CONNECT, because the review has none. */
  readonly objectUid?: string;
  /** True if the decision grants access. It becomes a denial if the server cannot write its audit line. */
  readonly opensAccess?: boolean;
}

/**
 * The logic of one webhook. It reads and records only through its ports. An error that it throws becomes a denial with status 500; an
 * observe-only webhook allows the request instead.
 */
export interface Handler {
  /** `signal` aborts at the deadline of the call, which denies the request with status 504. */
  decide(review: Review, signal: AbortSignal): Decision | Promise<Decision>;
}

export const allow: Decision = {};

export const deny = (denial: Denial, details?: Decision['details']): Decision =>
  details ? { denial, details } : { denial };

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  403: 'Forbidden',
  404: 'NotFound',
  413: 'RequestEntityTooLarge',
  422: 'Invalid',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The answer to the API server. Its audit annotations have the code, the template, and the run, if there are any. */
export function answerOf(decision: Decision): Answer {
  const { denial, patch, warnings, details } = decision;
  const code = denial?.code ?? details?.code;
  const auditAnnotations = {
    ...(code === undefined ? {} : { code }),
    ...(details?.template === undefined ? {} : { template: details.template }),
    ...(details?.run === undefined ? {} : { run: details.run }),
  };
  return {
    allowed: denial === undefined,
    ...(denial ? { status: statusOf(denial) } : {}),
    ...(patch && !denial ? { patch } : {}),
    ...(warnings ? { warnings } : {}),
    ...(Object.keys(auditAnnotations).length > 0 ? { auditAnnotations } : {}),
  };
}

function statusOf(denial: Denial): NonNullable<Answer['status']> {
  const { status, code, message, field } = denial;
  const where = field === undefined || message.includes(field) ? '' : `${field}: `;
  return { code: status, reason: reasons[status] ?? 'Unknown', message: `${code}: ${where}${message}` };
}

/** Denies with all errors of a spec at once. */
export function invalidSpec(errors: readonly FieldError[]): Decision {
  const [first] = errors;
  return deny({
    code: 'InvalidSpec',
    message: errors.map(({ field, message }) => `${field} ${message}`).join('; '),
    status: 422,
    ...(first ? { field: first.field } : {}),
  });
}

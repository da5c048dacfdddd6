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
    | 'template'
    | 'templateUid'
    | 'templateGeneration'
    | 'duration'
    | 'target'
    | 'startAt'
    | 'emergency'
    | 'reason'
    | 'request'
    | 'pod'
    | 'container'
    | 'interactive'
    | 'component'
    | 'run'
    | 'code'
    | 'message'
  >;
  /**
   * The groups whose members this decision allows. In the audit line, the groups of the caller that are among them come first, so that
   * they stay if the list is cut.
   */
  readonly decidingGroups?: readonly string[];
  /** UID of the pod on CONNECT, because the review has none. */
  readonly objectUid?: string;
  /** True if access may open because of this decision. If the server cannot write its audit line, it denies the request instead. */
  readonly opensAccess?: boolean;
}

/**
 * The logic of one webhook. It reads and records only through its ports. An error that it throws becomes a denial with status 500; an
 * observe-only webhook allows the request instead.
 */
export interface Handler {
  /**
   * @param signal Aborts at the deadline of the call. The server then denies the request with status 504; an observe-only webhook allows
   * it.
   * @param address Of the client that sent the review, usually the API server.
   */
  decide(review: Review, signal: AbortSignal, address: string): Decision | Promise<Decision>;
}

/** Allows the request without changes, warnings, or audit details. */
export const allow: Decision = {};

/** Denies the request. `details`: for the audit line. */
export const deny = (denial: Denial, details?: Decision['details']): Decision =>
  details ? { denial, details } : { denial };

/** Reason of a metav1.Status, by HTTP status. */
const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'AlreadyExists',
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

/** Denies the request with `InvalidSpec`. The message lists all errors. */
export function invalidSpec(errors: readonly FieldError[]): Decision {
  const [first] = errors;
  return deny({
    code: 'InvalidSpec',
    message: errors.map(({ field, message }) => `${field} ${message}`).join('; '),
    status: 422,
    ...(first ? { field: first.field } : {}),
  });
}

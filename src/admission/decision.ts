import type { Violation } from '../access/policy/policy.ts';
import type { FieldError } from '../api/schema/read.ts';
import type { AuditRecord } from '../audit/record.ts';
import type { Answer, Review } from './codec.ts';
import type { AdmissionPatchOp } from './json-patch.ts';

/** For the caller. Server faults have a 5xx status. */
export interface Denial extends Omit<Violation, 'status'> {
  readonly status: number;
}

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
  /** Their members are allowed. They come first in the audit line, where the list may be cut. */
  readonly decidingGroups?: readonly string[];
  /** On CONNECT: the review has no UID of the pod. */
  readonly objectUid?: string;
  /** Access may open: if its audit line cannot be written, the server denies instead. */
  readonly opensAccess?: boolean;
}

/**
 * The logic of one webhook; it reads and records only through its ports. An error denies with
 * status 500, or allows if observe-only.
 */
export interface Handler {
  /**
   * @param signal Aborts at the deadline: status 504, or allowed if observe-only.
   * @param address Of the client that sent the review, usually the API server.
   */
  decide(review: Review, signal: AbortSignal, address: string): Decision | Promise<Decision>;
}

export const allow: Decision = {};

/** `details`: for the audit line. */
export const deny = (denial: Denial, details?: Decision['details']): Decision =>
  details ? { denial, details } : { denial };

/** Of a metav1.Status, by HTTP status. */
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

/** Its audit annotations have the code, the template, and the run. */
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

/** Programs read code and field from the cause. If the status is 422, kubectl prints the cause. */
function statusOf({ status, code, message, field }: Denial): NonNullable<Answer['status']> {
  const text = `${code}: ${message}`;
  const cause = { reason: code, message: text, ...(field === undefined ? {} : { field }) };
  return { code: status, reason: reasons[status] ?? 'Unknown', message: text, details: { causes: [cause] } };
}

export function invalidSpec(errors: readonly FieldError[]): Decision {
  const [first] = errors;
  return deny({
    code: 'InvalidObject',
    message: errors.map(({ field, message }) => `${field} ${message}`).join('; '),
    status: 422,
    ...(first ? { field: first.field } : {}),
  });
}

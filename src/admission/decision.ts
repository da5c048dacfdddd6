import type { Violation } from '../access/policy/policy.ts';
import type { FieldError } from '../api/schema/read.ts';
import type { AuditRecord } from '../audit/record.ts';
import type { Answer, Review } from './codec.ts';
import type { JsonPatchOp } from './json-patch.ts';

/** Why not, for the person who asked. Faults of ours carry a 5xx status. */
export interface Refusal extends Omit<Violation, 'status'> {
  readonly status: number;
}

/** What a handler came to. */
export interface Decision {
  /** Absent: allowed. */
  readonly refusal?: Refusal;
  readonly patch?: readonly JsonPatchOp[];
  readonly warnings?: readonly string[];
  /** What the audit line says besides who, what and the verdict. */
  readonly details?: Pick<
    AuditRecord,
    'template' | 'request' | 'pod' | 'container' | 'interactive' | 'component' | 'run' | 'code' | 'message'
  >;
  /** Groups that let callers in, whether or not this one is in them: the audit line keeps those that the caller is in. */
  readonly decidingGroups?: readonly string[];
  /** uid of the object where the review has none: that of the pod, on CONNECT. */
  readonly objectUid?: string;
  /** True for what opens access: it is refused when its audit line cannot be written. */
  readonly opensAccess?: boolean;
}

/** One webhook's logic: pure but for the ports it reads. What it throws becomes a refusal with status 500. */
export interface Handler {
  /** `signal` aborts when the apiserver will not wait any longer. */
  decide(review: Review, signal: AbortSignal): Decision | Promise<Decision>;
}

export const allow: Decision = {};

export const refuse = (refusal: Refusal, details?: Decision['details']): Decision =>
  details ? { refusal, details } : { refusal };

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

export function answerOf(decision: Decision): Answer {
  const { refusal, patch, warnings, details } = decision;
  const code = refusal?.code ?? details?.code;
  const auditAnnotations = {
    ...(code === undefined ? {} : { code }),
    ...(details?.template === undefined ? {} : { template: details.template }),
    ...(details?.run === undefined ? {} : { run: details.run }),
  };
  return {
    allowed: refusal === undefined,
    ...(refusal ? { status: statusOf(refusal) } : {}),
    ...(patch && !refusal ? { patch } : {}),
    ...(warnings ? { warnings } : {}),
    ...(Object.keys(auditAnnotations).length > 0 ? { auditAnnotations } : {}),
  };
}

function statusOf(refusal: Refusal): NonNullable<Answer['status']> {
  const { status, code, message, field } = refusal;
  const where = field === undefined || message.includes(field) ? '' : `${field}: `;
  return { code: status, reason: reasons[status] ?? 'Unknown', message: `${code}: ${where}${message}` };
}

/** All that is wrong with a spec, in one refusal. */
export function invalidSpec(errors: readonly FieldError[]): Decision {
  const [first] = errors;
  return refuse({
    code: 'InvalidSpec',
    message: errors.map(({ field, message }) => `${field} ${message}`).join('; '),
    status: 422,
    ...(first ? { field: first.field } : {}),
  });
}

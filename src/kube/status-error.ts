import type { StatusCause } from '../api/object.ts';
import { parseHttpDate } from '../kit/clock.ts';
import { listIn, own } from '../kit/json-value.ts';
import { ApiError } from './errors.ts';
import { number, text } from './fields.ts';
import type { JsonAnswer } from './json-call.ts';

const MAX_MESSAGE = 1000;

/** Throws ApiError for any response other than 2xx. */
export function successText({ status, headers, body }: JsonAnswer): string {
  const text = body.toString('utf8');
  if (status < 200 || status > 299) throw toApiError(status, headers['retry-after'], text);
  return text;
}

/** The message is `CODE: ` and at most 1,000 characters of `Status.message` or the body. */
export function toApiError(code: number, retryAfter: string | string[] | undefined, body: string): ApiError {
  const status = parseStatus(body);
  const message = text(status, 'message') ?? (body.trim() || 'no message');
  return new ApiError(
    code,
    text(status, 'reason') ?? '',
    `${code}: ${message.slice(0, MAX_MESSAGE)}`,
    retryAfterMs(retryAfter) ?? statusRetryAfterMs(status),
    listIn(own(status, 'details'), 'causes').map(causeOf),
  );
}

function causeOf(cause: unknown): StatusCause {
  const field = text(cause, 'field');
  return {
    reason: text(cause, 'reason') ?? '',
    message: (text(cause, 'message') ?? '').slice(0, MAX_MESSAGE),
    ...(field === undefined ? {} : { field }),
  };
}

/** From an ERROR event of a watch. Code 500 if the Status has none. */
export function statusToApiError(status: unknown): ApiError {
  return toApiError(number(status, 'code') ?? 500, undefined, JSON.stringify(status) ?? '');
}

function parseStatus(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Whole seconds. A date needs `nowMs`, the wall clock, and trust in that of the sender. */
export function retryAfterMs(header: string | string[] | undefined, nowMs?: number): number | undefined {
  if (typeof header !== 'string') return undefined;
  if (/^\d{1,6}$/.test(header)) return Number(header) * 1000;
  const atMs = nowMs === undefined ? undefined : parseHttpDate(header);
  return atMs === undefined || nowMs === undefined ? undefined : Math.max(0, atMs - nowMs);
}

function statusRetryAfterMs(status: unknown): number | undefined {
  const seconds = number(own(status, 'details'), 'retryAfterSeconds') ?? 0;
  return seconds > 0 ? seconds * 1000 : undefined;
}

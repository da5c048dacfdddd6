import { own } from '../kit/json-value.ts';
import { ApiError } from './errors.ts';
import { number, text } from './fields.ts';
import type { JsonAnswer } from './json-call.ts';

const MAX_MESSAGE = 1000;

/** The text of a 2xx answer. Throws ApiError for any other. */
export function textOf({ status, headers, body }: JsonAnswer): string {
  const text = body.toString('utf8');
  if (status < 200 || status > 299) throw toApiError(status, headers['retry-after'], text);
  return text;
}

/** The ApiError of an answer that is not 2xx: from its Status object when there is one, else from the raw text. */
export function toApiError(code: number, retryAfter: string | string[] | undefined, body: string): ApiError {
  const status = parseStatus(body);
  const message = text(status, 'message') ?? (body.trim() || 'no message');
  return new ApiError(
    code,
    text(status, 'reason') ?? '',
    `${code}: ${message.slice(0, MAX_MESSAGE)}`,
    retryAfterMs(retryAfter, own(status, 'details')),
  );
}

/** The ApiError of a Status object that came inside a watch stream. */
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

function retryAfterMs(header: string | string[] | undefined, details: unknown): number | undefined {
  // The date form of Retry-After is never sent by an apiserver and would need trust in its clock.
  if (typeof header === 'string' && /^\d{1,6}$/.test(header)) return Number(header) * 1000;
  const seconds = number(details, 'retryAfterSeconds') ?? 0;
  return seconds > 0 ? seconds * 1000 : undefined;
}

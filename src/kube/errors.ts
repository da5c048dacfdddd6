import type { StatusCause } from '../api/object.ts';

/** An answer of the API server other than 2xx, with the fields of its Status object. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(
    readonly code: number,
    /** metav1.StatusReason, such as `NotFound` or `Conflict`; empty if the body had none. */
    readonly reason: string,
    message: string,
    /** From the Retry-After header or Status.details. */
    readonly retryAfterMs?: number,
    /** From Status.details. */
    readonly causes: readonly StatusCause[] = [],
  ) {
    super(message);
  }

  /** The message of the Status: `message` without its code. */
  get why(): string {
    const lead = `${this.code}: `;
    return this.message.startsWith(lead) ? this.message.slice(lead.length) : this.message;
  }
}

/** The code with which a webhook or the gateway of drawbridge answered. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof ApiError ? error.causes[0]?.reason : undefined;

/** No complete or valid answer. Unless `notSent`, the server may have acted on the request. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  constructor(
    message: string,
    override readonly cause: unknown,
    /** No connection, no credentials, or a closed transport. After the time limit, always false. */
    readonly notSent: boolean,
    /** The message without the request, so that calls that fail alike have the same text. */
    readonly why: string = message,
  ) {
    super(message);
  }
}

/** The kubeconfig yields no credentials, for example because its exec plugin failed. */
export class CredentialError extends TransportError {}

export const isUnauthorized = (error: unknown): boolean => error instanceof ApiError && error.code === 401;
export const isForbidden = (error: unknown): boolean => error instanceof ApiError && error.code === 403;
/** The object does not exist, or its kind or path is not served. */
export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
/** Not for a 404 with another reason: there, the kind or path is not served. */
export const isObjectNotFound = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404 && error.reason === 'NotFound';
export const isAlreadyExists = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason === 'AlreadyExists';
/** The resourceVersion or uid that the write names is no longer the object's. */
export const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason === 'Conflict';
/** A merge patch names the uid of an earlier object. With an old version, too: `isConflict`. */
export const isReplaced = (error: unknown): boolean =>
  error instanceof ApiError &&
  error.code === 422 &&
  error.reason === 'Invalid' &&
  / is invalid: \[?metadata\.uid: /.test(error.message);
/** The same call may succeed later; other calls would probably fail now, too. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof TransportError || (error instanceof ApiError && (error.code >= 500 || error.code === 429));
/** Repeating the call does not help: a 4xx other than 404, 409, and 429. */
export const isRefused = (error: unknown): boolean =>
  error instanceof ApiError && error.code >= 400 && error.code < 500 && ![404, 409, 429].includes(error.code);
/** The resourceVersion or the continue token is too old. */
export const isExpired = (error: unknown): boolean => error instanceof ApiError && error.code === 410;
/** By any webhook. */
export const isWebhookDenial = (error: unknown): boolean =>
  error instanceof ApiError && error.code < 500 && error.message.includes(' denied the request: ');
/** Because of a webhook with side effects. */
export const isDryRunUnsupported = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 400 && / does not support dry[ -]?run/i.test(error.message);

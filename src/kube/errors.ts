/** An answer of the apiserver that is not 2xx: its Status object in short. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(
    /** HTTP status code. */
    readonly code: number,
    /** metav1.StatusReason, for example `NotFound`, `AlreadyExists`, `Conflict`, `Expired`; empty when the body was no Status. */
    readonly reason: string,
    message: string,
    /** From the Retry-After header or Status.details, milliseconds. */
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/** The request may or may not have reached the server: no complete answer came back. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  constructor(
    message: string,
    override readonly cause: unknown,
    /** True when the server certainly did not act on it (connection refused, TLS failure, never sent). */
    readonly notSent: boolean,
    /** What went wrong, without what was asked: the same for every call that ends like this. */
    readonly why: string = message,
  ) {
    super(message);
  }
}

export const isForbidden = (error: unknown): boolean => error instanceof ApiError && error.code === 403;
export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
/** There is no such object. A 404 with another reason means that its kind, or the path, is not served. */
export const isObjectNotFound = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404 && error.reason === 'NotFound';
export const isAlreadyExists = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason === 'AlreadyExists';
export const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason === 'Conflict';
/** The server is away or has too much to do, whatever was asked for: the same call may pass later, and others fare no better now. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof TransportError || (error instanceof ApiError && (error.code >= 500 || error.code === 429));
export const isExpired = (error: unknown): boolean => error instanceof ApiError && error.code === 410;

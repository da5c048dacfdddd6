/** An answer of the API server other than 2xx, with the fields of its Status object. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(
    /** HTTP status code. */
    readonly code: number,
    /** metav1.StatusReason, for example `NotFound`, `AlreadyExists`, `Conflict`, `Expired`; empty if the body had none. */
    readonly reason: string,
    message: string,
    /** From the Retry-After header or Status.details, milliseconds. */
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/**
 * No complete answer arrived, or it was no valid answer of the Kubernetes API. Unless `notSent`, the server may have acted on the request.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  constructor(
    message: string,
    override readonly cause: unknown,
    /**
     * True if the server certainly did not act on the request: no connection, no credentials, or a closed transport. False if the time
     * limit ended the call, even before the call had a connection.
     */
    readonly notSent: boolean,
    /** The message without the request, so that all calls that fail in this way have the same text. */
    readonly why: string = message,
  ) {
    super(message);
  }
}

export const isUnauthorized = (error: unknown): boolean => error instanceof ApiError && error.code === 401;
export const isForbidden = (error: unknown): boolean => error instanceof ApiError && error.code === 403;
/** Any 404: the object does not exist, or its kind or path is not served. */
export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
/** The object does not exist. A 404 with another reason means that its kind or path is not served. */
export const isObjectNotFound = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404 && error.reason === 'NotFound';
export const isAlreadyExists = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason === 'AlreadyExists';
/** The object has changed since the version that the write names, or the uid that a deletion or replacement names is not the object's. */
export const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason === 'Conflict';
/**
 * A merge patch names a uid, but another object has the name now. To the API server, the patch changes an immutable field. If the patch
 * also has an old resourceVersion, the answer is a conflict (`isConflict`) instead. For the status of a custom resource, the API server
 * ignores the uid.
 */
export const isReplaced = (error: unknown): boolean =>
  error instanceof ApiError &&
  error.code === 422 &&
  error.reason === 'Invalid' &&
  / is invalid: \[?metadata\.uid: /.test(error.message);
/** No usable answer, a 5xx, or a 429: the same call may succeed later, and other calls would probably fail now, too. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof TransportError || (error instanceof ApiError && (error.code >= 500 || error.code === 429));
/** The API server rejects the call itself, so that repeating it does not help: a 4xx other than 404, 409, and 429. */
export const isRefused = (error: unknown): boolean =>
  error instanceof ApiError && error.code >= 400 && error.code < 500 && ![404, 409, 429].includes(error.code);
/** The resourceVersion or the continue token is too old. */
export const isExpired = (error: unknown): boolean => error instanceof ApiError && error.code === 410;
/** The API server rejects the dry run because of a webhook with side effects. */
export const isDryRunUnsupported = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 400 && / does not support dry[ -]?run/i.test(error.message);

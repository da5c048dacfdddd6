const MAX_CAUSES = 8;
const MAX_LENGTH = 2000;

/** The code is stable between releases; the message is for the user. */
export class CodedError extends Error {
  override readonly name: string = 'CodedError';
  constructor(
    /** UpperCamelCase, stable: `InvalidJson`, `DeadlineExceeded` … */
    readonly code: string,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }
}

/** With its causes, without stacks, at most 2,000 characters. Never throws. */
export function describe(error: unknown): string {
  try {
    const parts: string[] = [];
    let link = error;
    for (let i = 0; i < MAX_CAUSES && link !== undefined && link !== null; i++) {
      const text = describeOne(link);
      // Many libraries already include the message of the cause.
      if (!parts.some((part) => part.includes(text))) parts.push(text);
      link = link instanceof Error ? link.cause : undefined;
    }
    return (parts.length > 0 ? parts.join(': ') : String(error)).slice(0, MAX_LENGTH);
  } catch {
    return 'an error that cannot be described';
  }
}

function describeOne(error: unknown): string {
  if (error instanceof Error) {
    if (error.message) return error.message;
    // A failed connect to several addresses throws this, with an empty message.
    if (error instanceof AggregateError) return error.errors.slice(0, MAX_CAUSES).map(describeOne).join('; ');
    return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  }
  if (typeof error === 'object' && error !== null) {
    // Never the whole object, which may contain a request with credentials.
    return 'message' in error && typeof error.message === 'string' ? error.message : 'an object that is not an Error';
  }
  return String(error);
}

/** A JSON string literal. JSON escapes line breaks, but not DEL or C1 controls. */
export function quote(text: string, maxLength = 64): string {
  return JSON.stringify(text.length > maxLength ? `${text.slice(0, maxLength)}…` : text);
}

export type JsonObject = { [field: string]: unknown };
/** RFC 6901: `/spec/cluster/region`. */
export type JsonPointer = `/${string}`;

/** Neither null nor an array. */
export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object's own field; undefined if it is inherited. */
export function own(object: unknown, field: string): unknown {
  return isRecord(object) && Object.hasOwn(object, field) ? object[field] : undefined;
}

/** Empty if there is none. */
export function listIn(object: unknown, field: string): readonly unknown[] {
  const list = own(object, field);
  return Array.isArray(list) ? list : [];
}

/** Through own fields of objects only; a pointer does not reach into lists. */
export function valueAt(document: unknown, pointer: JsonPointer): unknown {
  const segments = pointer.slice(1).split('/');
  return segments.reduce<unknown>(
    (value, segment) => own(value, segment.replaceAll('~1', '/').replaceAll('~0', '~')),
    document,
  );
}

export function pointerOf(...segments: readonly [string, ...string[]]): JsonPointer {
  return `/${segments.map((segment) => segment.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
}

/** A JSON string literal, for messages. */
export function quote(text: string, maxLength = 64): string {
  return JSON.stringify(text.length > maxLength ? `${text.slice(0, maxLength)}…` : text);
}

/** An error with a stable code for programs; the message is for people. */
export class CodedError extends Error {
  override readonly name: string = 'CodedError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The message with those of its causes, without stacks. */
export function describe(error: unknown): string {
  const parts: string[] = [];
  let link = error;
  for (let i = 0; i < 8 && link !== undefined && link !== null; i++) {
    const text = link instanceof Error ? link.message || link.name : String(link);
    // Many libraries already include the message of the cause.
    if (!parts.some((part) => part.includes(text))) parts.push(text);
    link = link instanceof Error ? link.cause : undefined;
  }
  return parts.join(': ').slice(0, 2000);
}

import { isRecord } from './json-value.ts';

/** An RFC 6901 pointer to a field of an object: `/spec/cluster/region`. */
export type JsonPointer = `/${string}`;

/** The segments, without escapes; undefined if the text is not a pointer, points to the whole document, or has an empty segment. */
export function pointerSegments(pointer: string): readonly string[] | undefined {
  if (!/^(\/([^~/]|~[01])+)+$/.test(pointer)) return undefined;
  const segments = pointer.slice(1).split('/');
  // Nearly all pointers have no escapes.
  if (!pointer.includes('~')) return segments;
  return segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export const isPointer = (text: string): text is JsonPointer => pointerSegments(text) !== undefined;

/** The pointer with these segments. */
export function pointerOf(...segments: readonly [string, ...string[]]): JsonPointer {
  return `/${segments.map((segment) => segment.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
}

/** Whether `inner` equals `outer` or is below it, by whole segments: `/a/b` is within `/a`, `/ab` is not. */
export function isWithin(inner: JsonPointer, outer: JsonPointer): boolean {
  return inner === outer || inner.startsWith(`${outer}/`);
}

/** Whether a write at one pointer can change the value at the other. */
export const overlap = (a: JsonPointer, b: JsonPointer): boolean => isWithin(a, b) || isWithin(b, a);

/** The value at the pointer, through own fields of objects only; undefined if there is none. A pointer does not reach into lists. */
export function valueAt(document: unknown, pointer: JsonPointer): unknown {
  let value = document;
  for (const segment of pointerSegments(pointer) ?? []) {
    if (!isRecord(value) || !Object.hasOwn(value, segment)) return undefined;
    value = value[segment];
  }
  return value;
}

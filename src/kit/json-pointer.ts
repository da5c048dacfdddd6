import { isRecord } from './json-value.ts';

/** RFC 6901: `/spec/cluster/region`. */
export type JsonPointer = `/${string}`;

/** Without escapes; undefined for the whole document, or with an empty segment. */
export function pointerSegments(pointer: string): readonly string[] | undefined {
  if (!/^(\/([^~/]|~[01])+)+$/.test(pointer)) return undefined;
  const segments = pointer.slice(1).split('/');
  // Nearly all pointers have no escapes.
  if (!pointer.includes('~')) return segments;
  return segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export const isPointer = (text: string): text is JsonPointer => pointerSegments(text) !== undefined;

export function pointerOf(...segments: readonly [string, ...string[]]): JsonPointer {
  return `/${segments.map((segment) => segment.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
}

/** By whole segments: `/a/b` is within `/a`, `/ab` is not. */
export function isWithin(inner: JsonPointer, outer: JsonPointer): boolean {
  return inner === outer || inner.startsWith(`${outer}/`);
}

/** A write at one pointer can change the value at the other. */
export const overlap = (a: JsonPointer, b: JsonPointer): boolean => isWithin(a, b) || isWithin(b, a);

/** Through own fields of objects only; a pointer does not reach into lists. */
export function valueAt(document: unknown, pointer: JsonPointer): unknown {
  let value = document;
  for (const segment of pointerSegments(pointer) ?? []) {
    if (!isRecord(value) || !Object.hasOwn(value, segment)) return undefined;
    value = value[segment];
  }
  return value;
}

import { isRecord } from './json-value.ts';

/** An RFC 6901 pointer to a field of an object: `/spec/cluster/region`. */
export type JsonPointer = `/${string}`;

/** The segments, unescaped; undefined for what is no pointer, or points to the whole document, or has an empty segment. */
export function pointerSegments(pointer: string): readonly string[] | undefined {
  if (!/^(\/([^~/]|~[01])+)+$/.test(pointer)) return undefined;
  const segments = pointer.slice(1).split('/');
  // As nearly all are.
  if (!pointer.includes('~')) return segments;
  return segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export const isPointer = (text: string): text is JsonPointer => pointerSegments(text) !== undefined;

/** The pointer to what lies below `segments`. */
export function pointerOf(...segments: readonly [string, ...string[]]): JsonPointer {
  return `/${segments.map((segment) => segment.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
}

/** Whether `inner` is `outer` or lies below it, by whole segments: `/a/b` is within `/a`, `/ab` is not. */
export function isWithin(inner: JsonPointer, outer: JsonPointer): boolean {
  return inner === outer || inner.startsWith(`${outer}/`);
}

/** Whether a write of one can change the value of the other. */
export const overlap = (a: JsonPointer, b: JsonPointer): boolean => isWithin(a, b) || isWithin(b, a);

/** The value there, by own fields of objects alone; undefined when there is none. Lists have no addressable items. */
export function valueAt(document: unknown, pointer: JsonPointer): unknown {
  let value = document;
  for (const segment of pointerSegments(pointer) ?? []) {
    if (!isRecord(value) || !Object.hasOwn(value, segment)) return undefined;
    value = value[segment];
  }
  return value;
}

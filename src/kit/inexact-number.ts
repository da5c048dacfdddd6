import { isRecord } from './json-value.ts';

const int64 = 2 ** 63;

/**
 * The path, such as `spec.sizes[2]`, of the first whole number that parsing may have changed; undefined if all numbers are exact. Beyond
 * 2^53, one JavaScript number represents several integers. Numbers beyond 2^63 count as exact, because API servers store them as float64, as
 * JavaScript does.
 */
export function inexactNumber(value: unknown, path = ''): string | undefined {
  if (typeof value === 'number') return isInexact(value) ? path : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [name, item] of Object.entries(value)) {
    if (typeof item !== 'number' && typeof item !== 'object') continue;
    const found = inexactNumber(item, isList ? `${path}[${name}]` : fieldPath(path, name));
    if (found !== undefined) return found;
  }
  return undefined;
}

const fieldPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** The JSON merge patch without the members that contain an inexact number; a list counts as one member. Undefined if nothing remains. */
export function exactPart(patch: unknown): unknown {
  if (!isRecord(patch)) return inexactNumber(patch) === undefined ? patch : undefined;
  const members = Object.entries(patch);
  const kept = members
    .map(([name, value]) => [name, exactPart(value)] as const)
    .filter(([, part]) => part !== undefined);
  return kept.length === 0 && members.length > 0 ? undefined : Object.fromEntries(kept);
}

const isInexact = (value: number): boolean =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= int64;

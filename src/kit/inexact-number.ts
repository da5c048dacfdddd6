import { isRecord } from './json-value.ts';

const int64 = 2 ** 63;

/**
 * The path, such as `spec.sizes[2]`, of the first whole number that JSON.parse may have rounded; undefined if there is none. Beyond 2^53,
 * one JavaScript number represents several integers. Numbers beyond 2^63 count as exact, because API servers also store them as float64.
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

/**
 * A copy of the JSON merge patch without each field that is an inexact number, or a list that contains one at any depth. An object keeps its
 * other fields; an object that loses all its fields is removed, too. Undefined if the whole patch is removed.
 */
export function exactPart(patch: unknown): unknown {
  if (!isRecord(patch)) return inexactNumber(patch) === undefined ? patch : undefined;
  const fields = Object.entries(patch);
  const kept = fields
    .map(([name, value]) => [name, exactPart(value)] as const)
    .filter(([, part]) => part !== undefined);
  return kept.length === 0 && fields.length > 0 ? undefined : Object.fromEntries(kept);
}

const isInexact = (value: number): boolean =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= int64;

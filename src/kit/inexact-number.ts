import { isRecord } from './json-value.ts';

const int64 = 2 ** 63;

/**
 * Where a value that was parsed from JSON holds a whole number that may not be the one that was written: beyond 2^53 a number of
 * JavaScript stands for several integers. A path such as `spec.sizes[2]`; undefined when all are exact. Beyond 2^63 API servers
 * keep numbers of the same precision, so nothing is lost there.
 */
export function inexactNumber(value: unknown, path = ''): string | undefined {
  if (typeof value === 'number') return isInexact(value) ? path : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [name, item] of Object.entries(value)) {
    if (typeof item !== 'number' && typeof item !== 'object') continue;
    const found = inexactNumber(item, isList ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What is left of a JSON merge patch without the members that hold such a number; a list counts as one. Undefined when nothing is. */
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

import { isRecord } from './json-value.ts';

const int64 = 2 ** 63;

/**
 * The path, such as `spec.sizes[2]`, of the first integer between 2^53 and 2^63, which JSON.parse
 * may have rounded. API servers store larger ones as float64, too.
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

/** Without inexact numbers, lists that contain one, and objects that lose all their fields. */
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

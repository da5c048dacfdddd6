import { isDeepStrictEqual } from 'node:util';

export type JsonObject = { [field: string]: unknown };

/** Counted for each value by `copyJson`: copying an empty value is work, too. */
export const valueWeight = 32;
/** Characters: over five times the largest object that the API server stores (1.5 MiB). */
export const maxWeight = 8 * 1024 * 1024;
/** A PodTemplateSpec is about 12 deep. */
const MAX_DEPTH = 64;

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

/** The entries with a string as value, such as labels. */
export function stringMap(map: unknown): Record<string, string> {
  if (!isRecord(map)) return {};
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** The strings in a list. */
export function strings(list: unknown): string[] {
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : [];
}

/** Values nested too deep to compare (about 1,500 levels) count as different. */
export function sameJson(a: unknown, b: unknown): boolean {
  try {
    return isDeepStrictEqual(a, b);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** `weight`: characters in strings and field names, plus `valueWeight` for each value. */
export type JsonCopy =
  | { readonly value: unknown; readonly weight: number }
  | { readonly problem: string; readonly tooLarge: boolean };

/**
 * A deep copy in plain objects and arrays. A problem, such as `has a field named __proto__`, if the
 * value is over 64 levels deep, heavier than `limit`, or not JSON.
 */
export function copyJson(value: unknown, limit: number = maxWeight): JsonCopy {
  const budget = { left: limit };
  try {
    return { value: copyWithin(value, budget, 0), weight: limit - budget.left };
  } catch (error) {
    if (budget.left < 0)
      return { problem: `is larger than ${limit} characters, with ${valueWeight} for each value`, tooLarge: true };
    if (error instanceof UnusableJson) return { problem: error.message, tooLarge: false };
    throw error;
  }
}

class UnusableJson extends Error {}

function copyWithin(value: unknown, budget: { left: number }, depth: number): unknown {
  budget.left -= typeof value === 'string' ? value.length + valueWeight : valueWeight;
  if (budget.left < 0) throw new UnusableJson('is too large');
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new UnusableJson(`contains ${value}, which JSON does not have`);
    return value;
  }
  if (depth >= MAX_DEPTH) throw new UnusableJson(`is nested more than ${MAX_DEPTH} levels deep`);
  if (Array.isArray(value)) return value.map((item) => copyWithin(item ?? null, budget, depth + 1));
  if (!isRecord(value)) throw new UnusableJson(`contains a ${typeof value}, which JSON does not have`);
  const copy: JsonObject = {};
  for (const field of Object.keys(value)) {
    if (field === '__proto__') throw new UnusableJson('has a field named __proto__');
    const item = value[field];
    if (item === undefined) continue;
    budget.left -= field.length;
    copy[field] = copyWithin(item, budget, depth + 1);
  }
  return copy;
}

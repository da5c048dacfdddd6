import { isRecord, type JsonObject } from './json-value.ts';

/** RFC 7396, into a new value. Reads own fields only: the patch is untrusted. */
export function mergePatched(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const fields = new Map(isRecord(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) fields.delete(name);
    else fields.set(name, mergePatched(fields.get(name), value));
  }
  const merged: JsonObject = Object.fromEntries(fields);
  return merged;
}

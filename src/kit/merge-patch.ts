import { isRecord, type JsonObject } from './json-value.ts';

/** Applies a JSON merge patch (RFC 7396) without changing `target`. Reads own fields only, because the patch is untrusted. */
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

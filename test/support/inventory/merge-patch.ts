import { isRecord, type JsonObject } from '../../../src/kit/json-value.ts';
import { plainCopy } from './plain-copy.ts';

/** Applies a merge patch (RFC 7386) like the API server. Does not change its arguments. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return plainCopy(patch);
  const merged: JsonObject = isRecord(target) ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete merged[field];
    else merged[field] = mergePatch(merged[field], value);
  }
  return merged;
}

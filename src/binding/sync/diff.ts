import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';

/**
 * The JSON merge patch (RFC 7386) that turns `from` into `to`, with null for what has to go; undefined when they are the same.
 * A member that is null counts as absent: merge patches cannot tell the two apart, and API servers drop such members.
 */
export function mergePatch(from: unknown, to: unknown): unknown {
  if (isAbsent(to)) return isAbsent(from) ? undefined : null;
  if (!isRecord(to) || !isRecord(from)) return same(from, to) ? undefined : to;
  const members: [string, unknown][] = [];
  for (const name of Object.keys(to)) {
    const change = mergePatch(own(from, name), to[name]);
    if (change !== undefined) members.push([name, change]);
  }
  for (const name of Object.keys(from)) {
    if (!Object.hasOwn(to, name) && !isAbsent(from[name])) members.push([name, null]);
  }
  // Not by assignment: a member may be called __proto__.
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/** Equal as far as merge patches can make them so. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b || (isAbsent(a) && isAbsent(b))) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (!isRecord(a) || !isRecord(b)) return false;
  return containedIn(a, b) && Object.keys(b).every((name) => Object.hasOwn(a, name) || isAbsent(b[name]));
}

function containedIn(a: JsonObject, b: JsonObject): boolean {
  return Object.keys(a).every((name) => same(a[name], own(b, name)));
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

import { isDeepStrictEqual } from 'node:util';
import { isWithin, type JsonPointer, pointerOf } from '../../kit/json-pointer.ts';
import { isRecord } from '../../kit/json-value.ts';

/**
 * The first field that differs between two versions of an object and lies outside of `owned`. Objects that only hold what is owned
 * may come and go with it; everything else counts, an empty object included.
 */
export function foreignChange(before: unknown, after: unknown, owned: readonly JsonPointer[]): JsonPointer | undefined {
  return changeBelow([], before, after, owned);
}

function changeBelow(
  path: readonly string[],
  before: unknown,
  after: unknown,
  owned: readonly JsonPointer[],
): JsonPointer | undefined {
  if (path.length === 0) return changeIn(path, isRecord(before) ? before : {}, isRecord(after) ? after : {}, owned);
  const here = at(path);
  if (owned.some((one) => isWithin(here, one))) return undefined;
  const leadsToOwned = owned.some((one) => isWithin(one, here));
  if (leadsToOwned && isAbsentOrRecord(before) && isAbsentOrRecord(after)) {
    return changeIn(path, before ?? {}, after ?? {}, owned);
  }
  return isDeepStrictEqual(before, after) ? undefined : here;
}

function changeIn(
  path: readonly string[],
  before: object,
  after: object,
  owned: readonly JsonPointer[],
): JsonPointer | undefined {
  const [was, is] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  for (const field of new Set([...was.keys(), ...is.keys()])) {
    const found = changeBelow([...path, field], was.get(field), is.get(field), owned);
    if (found !== undefined) return found;
  }
  return undefined;
}

const at = ([first = '', ...rest]: readonly string[]): JsonPointer => pointerOf(first, ...rest);

const isAbsentOrRecord = (value: unknown): value is object | undefined => value === undefined || isRecord(value);

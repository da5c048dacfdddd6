import { isDeepStrictEqual } from 'node:util';
import { kubeconfigOutput, kubeconfigSecretName } from '../../api/inventory/names.ts';
import { isWithin, type JsonPointer, pointerOf, valueAt } from '../../kit/json-pointer.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { mergePatched } from '../../kit/merge-patch.ts';
import type { Violation } from './violation.ts';

export interface Writer {
  readonly component: string;
  readonly entryUid: string;
  readonly writes: readonly JsonPointer[];
}

/** Checks a component's write of a status, both untrusted. A violation rejects all of it. */
export function writeViolation(writer: Writer, before: unknown, after: unknown): Violation | undefined {
  const { component, writes } = writer;
  const foreign = foreignChange({ status: before }, { status: after }, writes);
  if (foreign !== undefined) {
    return {
      code: 'ForeignPath',
      message: `component ${component} does not own ${foreign}; it may only write ${writes.join(', ')}; leave it unchanged, or the server rejects the whole write`,
      field: foreign,
      status: 403,
    };
  }
  return foreignSecret(writer, after);
}

/** Checks the outputs of an outcome: `patch` is a merge patch of `status.outputs`. */
export function outputsViolation(writer: Writer, outputs: unknown, patch: unknown): Violation | undefined {
  return writeViolation(writer, { outputs }, { outputs: mergePatched(outputs, patch) });
}

/** Readers follow `secretRef` with their own permissions, so it must name no other Secret. */
function foreignSecret({ entryUid, writes }: Writer, status: unknown): Violation | undefined {
  if (!writes.some((path) => isWithin(path, kubeconfigOutput))) return undefined;
  const field: JsonPointer = `${kubeconfigOutput}/secretRef`;
  const ref = valueAt({ status }, field);
  if (ref === undefined) return undefined;
  const expectedName = kubeconfigSecretName(entryUid);
  if (own(ref, 'name') === expectedName && own(ref, 'namespace') === undefined) return undefined;
  return {
    code: 'ForeignPath',
    message: `${field} names another Secret, or sets a namespace; it must name Secret ${expectedName} without a namespace, because readers of this entry may read only that Secret`,
    field,
    status: 403,
  };
}

/** The first field outside `owned` that differs. Objects with only owned fields may come and go. */
export function foreignChange(before: unknown, after: unknown, owned: readonly JsonPointer[]): JsonPointer | undefined {
  return changeBelow([], before, after, owned);
}

function changeBelow(
  segments: readonly string[],
  before: unknown,
  after: unknown,
  owned: readonly JsonPointer[],
): JsonPointer | undefined {
  if (segments.length === 0)
    return changeIn(segments, isRecord(before) ? before : {}, isRecord(after) ? after : {}, owned);
  const here = pointerTo(segments);
  if (owned.some((path) => isWithin(here, path))) return undefined;
  const leadsToOwned = owned.some((path) => isWithin(path, here));
  if (leadsToOwned && isAbsentOrRecord(before) && isAbsentOrRecord(after)) {
    return changeIn(segments, before ?? {}, after ?? {}, owned);
  }
  return isDeepStrictEqual(before, after) ? undefined : here;
}

function changeIn(
  segments: readonly string[],
  before: object,
  after: object,
  owned: readonly JsonPointer[],
): JsonPointer | undefined {
  const fieldsBefore = new Map(Object.entries(before));
  const fieldsAfter = new Map(Object.entries(after));
  for (const field of new Set([...fieldsBefore.keys(), ...fieldsAfter.keys()])) {
    const change = changeBelow([...segments, field], fieldsBefore.get(field), fieldsAfter.get(field), owned);
    if (change !== undefined) return change;
  }
  return undefined;
}

const pointerTo = ([first = '', ...rest]: readonly string[]): JsonPointer => pointerOf(first, ...rest);

const isAbsentOrRecord = (value: unknown): value is object | undefined => value === undefined || isRecord(value);

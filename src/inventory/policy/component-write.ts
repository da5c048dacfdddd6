import { isDeepStrictEqual } from 'node:util';
import { kubeconfigOutput, kubeconfigSecretName } from '../../api/inventory/names.ts';
import { isWithin, type JsonPointer, pointerOf, valueAt } from '../../kit/json-pointer.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { mergePatched } from '../../kit/merge-patch.ts';
import type { Violation } from './violation.ts';

/** The component that writes. */
export interface Writer {
  readonly component: string;
  readonly entryUid: string;
  /** Paths that the component owns. */
  readonly writes: readonly JsonPointer[];
}

/** Checks a component's write of an entry's status. Both versions are untrusted. A violation rejects the whole write. */
export function writeViolation(writer: Writer, before: unknown, after: unknown): Violation | undefined {
  const { component, writes } = writer;
  const foreign = foreignChange({ status: before }, { status: after }, writes);
  if (foreign !== undefined) {
    return {
      code: 'ForeignPath',
      message: `component ${component} does not own this field; it may only write ${writes.join(', ')}; the whole write was rejected`,
      field: foreign,
      status: 403,
    };
  }
  return foreignSecret(writer, after);
}

/** Checks the outputs of an outcome: a merge patch of `status.outputs`. `outputs` are the current ones. */
export function outputsViolation(writer: Writer, outputs: unknown, patch: unknown): Violation | undefined {
  return writeViolation(writer, { outputs }, { outputs: mergePatched(outputs, patch) });
}

/** Readers of a kubeconfig follow `secretRef` with their own permissions, so it must not name another Secret. */
function foreignSecret({ entryUid, writes }: Writer, status: unknown): Violation | undefined {
  if (!writes.some((path) => isWithin(path, kubeconfigOutput))) return undefined;
  const field: JsonPointer = `${kubeconfigOutput}/secretRef`;
  const ref = valueAt({ status }, field);
  if (ref === undefined) return undefined;
  const wanted = kubeconfigSecretName(entryUid);
  if (own(ref, 'name') === wanted && own(ref, 'namespace') === undefined) return undefined;
  return {
    code: 'ForeignSecret',
    message: `names another Secret; it must name Secret ${wanted} without a namespace, because readers of this entry may read only that Secret`,
    field,
    status: 403,
  };
}

/**
 * The first field outside `owned` that differs between two versions of an object. Objects that contain only owned fields may be added or
 * removed; every other change counts, including an empty object.
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

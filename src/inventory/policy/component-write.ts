import { kubeconfigOutput, kubeconfigSecretName } from '../../api/inventory/names.ts';
import { isWithin, type JsonPointer, valueAt } from '../../kit/json-pointer.ts';
import { own } from '../../kit/json-value.ts';
import { mergePatched } from '../../kit/merge-patch.ts';
import { foreignChange } from './foreign-change.ts';
import type { Violation } from './violation.ts';

/** Whose write it is. */
export interface Writer {
  readonly component: string;
  readonly entryUid: string;
  /** The paths that it owns. */
  readonly writes: readonly JsonPointer[];
}

/** Why a component may not make the status of an entry what it would be; both are hostile. A violation refuses all of the write. */
export function writeViolation(writer: Writer, before: unknown, after: unknown): Violation | undefined {
  const { component, writes } = writer;
  const foreign = foreignChange({ status: before }, { status: after }, writes);
  if (foreign !== undefined) {
    return {
      code: 'ForeignPath',
      message: `component ${component} may only write ${writes.join(', ')}; nothing of this write was taken`,
      field: foreign,
      status: 403,
    };
  }
  return foreignSecret(writer, after);
}

/** The same for `outputs` of an outcome: a merge patch of `status.outputs`, as `outputs` are now. */
export function outputsViolation(writer: Writer, outputs: unknown, patch: unknown): Violation | undefined {
  return writeViolation(writer, { outputs }, { outputs: mergePatched(outputs, patch) });
}

/** Readers of a kubeconfig follow the reference with rights of their own: it must not lead them elsewhere. */
function foreignSecret({ entryUid, writes }: Writer, status: unknown): Violation | undefined {
  if (!writes.some((path) => isWithin(path, kubeconfigOutput))) return undefined;
  const field: JsonPointer = `${kubeconfigOutput}/secretRef`;
  const ref = valueAt({ status }, field);
  if (ref === undefined) return undefined;
  const wanted = kubeconfigSecretName(entryUid);
  if (own(ref, 'name') === wanted && own(ref, 'namespace') === undefined) return undefined;
  return {
    code: 'ForeignSecret',
    message: `must name Secret ${wanted} and no namespace: it is the one that the readers of this entry may read`,
    field,
    status: 403,
  };
}

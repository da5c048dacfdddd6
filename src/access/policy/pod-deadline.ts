import { listIn, own } from '../../kit/json-value.ts';

/** `activeDeadlineSeconds` that a template sets for its access pods. */
interface SetDeadline {
  /** The field of the template. */
  readonly where: string;
  /** The value as the author wrote it. The server uses it only if `isDeadline`. */
  readonly seconds: unknown;
}

/** Whether the server uses `activeDeadlineSeconds` of a pod template, as a maximum. Otherwise, it sets the granted time. */
export const isDeadline = (seconds: unknown): seconds is number => Number.isInteger(seconds) && Number(seconds) >= 1;

/**
 * The deadline that `podSpec` or a patch of the template with this `spec` sets. Undefined if neither does, or if the last patch of the
 * field removes it, or moves or copies a value to it. Ignores a patch of the whole `/spec`.
 */
export function setDeadline(spec: object): SetDeadline | undefined {
  if (own(spec, 'controllerTargetRef') === undefined) {
    const seconds = own(own(spec, 'podSpec'), 'activeDeadlineSeconds') ?? undefined;
    return seconds === undefined ? undefined : { where: 'spec.podSpec', seconds };
  }
  const operations = listIn(own(spec, 'controllerTargetMutationConfig'), 'patchSpecOperations');
  const index = operations.findLastIndex(
    (operation) => own(operation, 'path') === '/spec/activeDeadlineSeconds' && own(operation, 'op') !== 'test',
  );
  const operation = operations[index];
  if (own(operation, 'op') !== 'add' && own(operation, 'op') !== 'replace') return undefined;
  const where = `spec.controllerTargetMutationConfig.patchSpecOperations[${index}]`;
  return { where, seconds: own(operation, 'value') };
}

/** The time after which the kubelet ends access pods of the template because of `setDeadline`, milliseconds. Infinity without one. */
export function setDeadlineMs(spec: object): number {
  const seconds = setDeadline(spec)?.seconds;
  return isDeadline(seconds) ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

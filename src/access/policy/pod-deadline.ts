import { listIn, own } from '../../kit/json-value.ts';

/** `activeDeadlineSeconds` that a template sets for its access pods. */
interface SetDeadline {
  /** The field of the template. */
  readonly where: string;
  /** As the author wrote it. The server uses it only if `isDeadline`. */
  readonly seconds: unknown;
}

/** Used as a maximum; any other value gives way to the granted time. */
export const isDeadline = (seconds: unknown): seconds is number => Number.isInteger(seconds) && Number(seconds) >= 1;

/** By `podSpec` or the last patch of the field. Ignores a patch of the whole `/spec`. */
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

/** Milliseconds until the kubelet ends access pods of the template; Infinity without a deadline. */
export function setDeadlineMs(spec: object): number {
  const seconds = setDeadline(spec)?.seconds;
  return isDeadline(seconds) ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

import type { Clock } from './sdk/clock.ts';
import type { MissingInput, Outcome } from './sdk/contract.ts';
import type { Credentials, KubeClient } from './sdk/kubernetes.ts';
import { isRecord, type JsonPointer, pointerOf, valueAt } from './sdk/values.ts';

export interface ComponentsDeps {
  /** Of the management cluster, where custom resources represent cloud resources. */
  readonly management: KubeClient;
  readonly connect: (credentials: Credentials) => KubeClient;
  readonly clock: Clock;
}

/** The non-empty string at `pointer`. Content of entries is untrusted. */
export function textAt(document: unknown, pointer: JsonPointer): string | undefined {
  const value = valueAt(document, pointer);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The safe integer at `pointer`. */
export function wholeNumberAt(document: unknown, pointer: JsonPointer): number | undefined {
  const value = valueAt(document, pointer);
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined;
}

/** Path in the configuration of a component. */
export const configOf = (component: string, field: string): JsonPointer =>
  pointerOf('spec', 'components', component, 'config', field);

/** NotReady with the paths that have no value, at most 16, if any. Null counts as a value. */
export function notReadyUnlessPresent(document: unknown, ...paths: readonly JsonPointer[]): Outcome | undefined {
  return notReadyFor(
    'present',
    paths.filter((path) => valueAt(document, path) === undefined),
  );
}

/** NotReady with the paths that have a value, at most 16, if any. Null counts as a value. */
export function notReadyUnlessAbsent(document: unknown, ...paths: readonly JsonPointer[]): Outcome | undefined {
  return notReadyFor(
    'absent',
    paths.filter((path) => valueAt(document, path) !== undefined),
  );
}

/** The fields directly below `/status/outputs`, except those of `owners`. */
export function outputPathsExcept(document: unknown, ...owners: readonly string[]): JsonPointer[] {
  const outputs = valueAt(document, '/status/outputs');
  if (!isRecord(outputs)) return [];
  return Object.keys(outputs)
    .filter((owner) => !owners.includes(owner))
    .map((owner) => pointerOf('status', 'outputs', owner));
}

/** In one outcome. */
const maxMissing = 16;

function notReadyFor(want: 'present' | 'absent', paths: readonly JsonPointer[]): Outcome | undefined {
  const [first, ...rest] = paths.slice(0, maxMissing).map((path): MissingInput => ({ path, want }));
  return first ? { outcome: 'NotReady', missing: [first, ...rest] } : undefined;
}

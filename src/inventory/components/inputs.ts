import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import type { Clock } from '../../kit/clock.ts';
import { type JsonPointer, pointerOf, valueAt } from '../../kit/json-pointer.ts';
import { isRecord } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Credentials } from '../../kube/credentials.ts';

/** What the reference components are given. */
export interface ComponentsDeps {
  /** The management cluster: custom resources in it stand for what a cloud makes. */
  readonly management: Client;
  /** Namespace of these custom resources; undefined: that of the entry. */
  readonly namespace?: string;
  /** Opens managed clusters. */
  readonly connect: (credentials: Credentials) => Cluster;
  readonly clock: Clock;
}

/** The string there; undefined for anything else. Content of entries is hostile. */
export function textAt(document: unknown, pointer: JsonPointer): string | undefined {
  const value = valueAt(document, pointer);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function wholeNumberAt(document: unknown, pointer: JsonPointer): number | undefined {
  const value = valueAt(document, pointer);
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined;
}

export const configOf = (component: string, field: string): JsonPointer =>
  pointerOf('spec', 'components', component, 'config', field);

/** NotReady that names those of the paths where there is nothing; undefined when nothing is missing. */
export function missingOf(document: unknown, ...paths: readonly JsonPointer[]): Outcome | undefined {
  return waitFor(
    'present',
    paths.filter((path) => valueAt(document, path) === undefined),
  );
}

/** NotReady until there is nothing at any of the paths. */
export function waitForAbsence(document: unknown, ...paths: readonly JsonPointer[]): Outcome | undefined {
  return waitFor(
    'absent',
    paths.filter((path) => valueAt(document, path) !== undefined),
  );
}

/** The outputs in the entry that are of none of these owners. */
export function outputsBesides(document: unknown, ...owners: readonly string[]): JsonPointer[] {
  const outputs = valueAt(document, '/status/outputs');
  if (!isRecord(outputs)) return [];
  return Object.keys(outputs)
    .filter((owner) => !owners.includes(owner))
    .map((owner) => pointerOf('status', 'outputs', owner));
}

/** Most that one answer should name. */
const mostNamed = 16;

function waitFor(want: 'present' | 'absent', paths: readonly JsonPointer[]): Outcome | undefined {
  const [first, ...rest] = paths.slice(0, mostNamed).map((path): MissingInput => ({ path, want }));
  return first ? { outcome: 'NotReady', missing: [first, ...rest] } : undefined;
}

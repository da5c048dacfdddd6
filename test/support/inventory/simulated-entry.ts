import { abandonAnnotation, forceAnnotation } from '../../../src/api/inventory/names.ts';
import type { Entry, EntryRef } from '../../../src/inventory/entry.ts';
import type { KnownContent } from './known-digests.ts';

/** What users and components have made of an entry. */
export interface EntryFacts {
  readonly ref: EntryRef;
  readonly deleting: boolean;
  readonly suspended: boolean;
  /** Names of components. */
  readonly disabled: readonly string[];
  readonly abandoned: readonly string[];
  readonly force: Readonly<Record<string, string>>;
  readonly bytes: number;
  readonly spec: { readonly cluster: Readonly<Record<string, number>> };
  readonly outputs: Readonly<Record<string, { readonly value: number }>>;
}

/** One version of an entry. */
export interface SimEntry extends Entry {
  readonly content: KnownContent;
  readonly version: number;
  readonly facts: EntryFacts;
}

export const newFacts = (ref: EntryRef, cluster: Readonly<Record<string, number>>): EntryFacts => ({
  ref,
  deleting: false,
  suspended: false,
  disabled: none,
  abandoned: none,
  force: {},
  bytes: 2000,
  spec: { cluster },
  outputs: {},
});

/** As the store of the mothership gives it. */
export function simEntryOf(facts: EntryFacts, version: number): SimEntry {
  const { ref, deleting, suspended, disabled, abandoned, force, bytes, spec, outputs } = facts;
  const annotations: Record<string, string> = {};
  for (const name of Object.keys(force)) annotations[forceAnnotation(name)] = force[name] ?? '';
  for (const name of abandoned) annotations[abandonAnnotation(name)] = '';
  const components: Record<string, { readonly enabled: boolean }> = {};
  for (const name of disabled) components[name] = { enabled: false };
  return {
    ref,
    version,
    facts,
    resourceVersion: String(version),
    deleting,
    finalizers: none,
    labels: {},
    annotations,
    mode: 'managed',
    suspended,
    kubeconfigSecretRef: undefined,
    kubeconfigSetBy: undefined,
    disabled: new Set(disabled),
    bytes,
    content: {
      spec: { mode: 'managed', suspend: suspended, cluster: spec.cluster, components },
      status: { outputs },
      digests: [],
    },
    components: none,
    conditions: none,
  };
}

const none: readonly never[] = [];

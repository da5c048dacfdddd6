import { isDeepStrictEqual } from 'node:util';
import { reconcileRuns, runName } from '../../api/inventory/names.ts';
import type { KubeObject, ObjectName } from '../../api/object.ts';
import type { Client } from '../../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound, TransportError } from '../../kube/errors.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { Store } from '../../kube/store.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { RecordChange, RunStore, Swap } from '../ports/run-store.ts';
import { type RunView, recordIn, runObject, specPatch } from './run-object.ts';

/** What is kept of a ReconcileRun; undefined for one that does not read as one. */
export function runView(object: KubeObject): RunView | undefined {
  const stored = recordIn(object);
  const { uid } = object.metadata;
  if (!stored || !uid) return undefined;
  return { ...stored, key: keyText(keyOf(stored.record)), uid };
}

const keyOf = (record: RunRecord): ComponentKey => ({ entryUid: record.entry.uid, component: record.component });
const nameOf = ({ entry, component }: RunRecord): ObjectName => ({
  namespace: entry.namespace,
  name: runName(entry.uid, component),
});

/** The records, as custom resources. */
export class KubeRunStore implements RunStore {
  readonly #client: Client;
  readonly #store: Store<RunView>;
  readonly #namespaceOf: (entryUid: string) => string | undefined;
  readonly #latest = new Map<string, StoredRecord>();
  readonly #listeners = new Set<(change: RecordChange) => void>();

  /** `client` writes, `store` is what is watched with `runView`; `namespaceOf` finds the entry of a record that is not watched yet. */
  constructor(client: Client, store: Store<RunView>, namespaceOf: (entryUid: string) => string | undefined) {
    this.#client = client;
    this.#store = store;
    this.#namespaceOf = namespaceOf;
    store.subscribe((event) => {
      if (event.type === 'deleted') this.#gone(keyOf(event.before.record), event.before.resourceVersion);
      else this.#seen(event.now);
    });
  }

  find(key: ComponentKey): StoredRecord | undefined {
    return this.#latest.get(keyText(key));
  }

  list(): Iterable<StoredRecord> {
    return this.#latest.values();
  }

  subscribe(listener: (change: RecordChange) => void): () => void {
    for (const stored of [...this.#latest.values()]) listener({ kind: 'changed', stored });
    const own = (change: RecordChange): void => listener(change);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  whenSynced(signal?: AbortSignal): Promise<void> {
    return this.#store.whenSynced(signal);
  }

  async load(key: ComponentKey, signal: AbortSignal): Promise<StoredRecord | undefined> {
    const namespace = this.find(key)?.record.entry.namespace ?? this.#namespaceOf(key.entryUid);
    return namespace === undefined
      ? undefined
      : this.#load({ namespace, name: runName(key.entryUid, key.component) }, signal);
  }

  async swap(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap> {
    try {
      const stored = readable(await (base ? this.#patch(next, base, signal) : this.#create(next, signal)));
      this.#note(stored);
      return { kind: 'stored', stored };
    } catch (error) {
      const lost = isConflict(error) || isAlreadyExists(error) || (base !== undefined && isNotFound(error));
      if (!lost) throw error;
      return this.#lost(next, base, signal);
    }
  }

  async remove({ record, resourceVersion }: StoredRecord, signal: AbortSignal): Promise<void> {
    await this.#client.delete(reconcileRuns, nameOf(record), { resourceVersion, signal });
    this.#gone(keyOf(record), resourceVersion);
  }

  #patch(next: RunRecord, { resourceVersion }: StoredRecord, signal: AbortSignal): Promise<KubeObject> {
    const patch = { metadata: { resourceVersion }, spec: specPatch(next) };
    return this.#client.mergePatch(reconcileRuns, nameOf(next), patch, { signal });
  }

  #create(next: RunRecord, signal: AbortSignal): Promise<KubeObject> {
    return this.#client.create(reconcileRuns, runObject(next), { signal });
  }

  /** Somebody was first: another process, or this very write, whose answer got lost on an earlier try. */
  async #lost(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap> {
    const stored = await this.#load(nameOf(next), signal);
    if (stored) this.#note(stored);
    const isOurs = stored && stored.resourceVersion !== base?.resourceVersion && sameSpec(stored.record, next);
    return isOurs ? { kind: 'stored', stored } : { kind: 'conflict', stored };
  }

  async #load(name: ObjectName, signal: AbortSignal): Promise<StoredRecord | undefined> {
    try {
      return recordIn(await this.#client.get(reconcileRuns, name, { signal }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Of our own writes, which the watch tells of later. */
  #note(stored: StoredRecord): void {
    this.#latest.set(keyText(keyOf(stored.record)), stored);
  }

  #seen(stored: StoredRecord): void {
    const key = keyText(keyOf(stored.record));
    const known = this.#latest.get(key);
    if (known && isOlder(stored.resourceVersion, known.resourceVersion)) return;
    // One object for both, where it is the same version.
    if (known?.resourceVersion !== stored.resourceVersion) this.#latest.set(key, stored);
    for (const listener of [...this.#listeners]) listener({ kind: 'changed', stored });
  }

  #gone(key: ComponentKey, resourceVersion: string): void {
    const known = this.#latest.get(keyText(key));
    if (!known || isOlder(resourceVersion, known.resourceVersion)) return;
    this.#latest.delete(keyText(key));
    for (const listener of [...this.#listeners]) listener({ kind: 'gone', key });
  }
}

function readable(object: KubeObject): StoredRecord {
  const stored = recordIn(object);
  if (stored) return stored;
  throw new TransportError(`record ${object.metadata.name}: the answer is not a ReconcileRun`, undefined, false);
}

/** As they are stored. */
function sameSpec(a: RunRecord, b: RunRecord): boolean {
  const plain = (record: RunRecord): unknown => JSON.parse(JSON.stringify(specPatch(record)));
  return isDeepStrictEqual(plain(a), plain(b));
}

import { isDeepStrictEqual } from 'node:util';
import { reconcileRuns, runName } from '../../api/inventory/names.ts';
import type { KubeObject, ObjectName } from '../../api/object.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound, TransportError } from '../../kube/errors.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { Store } from '../../kube/store.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { InventoryStore, RecordChange, RunStore, Swap } from '../ports.ts';
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

/**
 * The records, as custom resources. They are watched in all namespaces, but whoever may make some in a namespace says nothing of entries
 * in another: only those beside their entry count.
 */
export class KubeRunStore implements RunStore {
  readonly #client: Client;
  readonly #store: Store<RunView>;
  readonly #entries: Pick<InventoryStore, 'find'>;
  readonly #latest = new Map<string, StoredRecord>();
  /** By uid, those that were seen before their entry, by their keys in the store: the two watches have no order. */
  readonly #early = new Map<string, Map<string, RunView>>();
  readonly #listeners = new Set<(change: RecordChange) => void>();

  /** `client` writes, `store` is what is watched with `runView`. */
  constructor(client: Client, store: Store<RunView>, entries: Pick<InventoryStore, 'find' | 'subscribe'>) {
    this.#client = client;
    this.#store = store;
    this.#entries = entries;
    entries.subscribe((change) => {
      if (change.kind === 'changed') this.#arrived(change.entry.ref.uid);
    });
    store.subscribe((event) => {
      if (event.type === 'deleted') this.#deleted(event.key, event.before);
      else this.#watched(event.key, event.now);
    });
  }

  find(key: ComponentKey): StoredRecord | undefined {
    return this.#latest.get(keyText(key));
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
    const namespace = this.find(key)?.record.entry.namespace ?? this.#entries.find(key.entryUid)?.ref.namespace;
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
    const found = await findObject(this.#client, reconcileRuns, name, { signal });
    return found && recordIn(found);
  }

  /** Of our own writes, which the watch tells of later. */
  #note(stored: StoredRecord): void {
    this.#latest.set(keyText(keyOf(stored.record)), stored);
  }

  #watched(key: string, view: RunView): void {
    const { uid, namespace } = view.record.entry;
    const entry = this.#entries.find(uid);
    if (entry?.ref.namespace === namespace) this.#seen(view);
    if (entry) return;
    const early = this.#early.get(uid) ?? new Map<string, RunView>();
    this.#early.set(uid, early.set(key, view));
  }

  #arrived(entryUid: string): void {
    const early = this.#early.get(entryUid);
    this.#early.delete(entryUid);
    for (const [key, view] of early ?? []) this.#watched(key, view);
  }

  #deleted(key: string, { record, resourceVersion }: RunView): void {
    const { uid, namespace } = record.entry;
    const early = this.#early.get(uid);
    if (early?.delete(key) && early.size === 0) this.#early.delete(uid);
    const isBesideEntry = this.#latest.get(keyText(keyOf(record)))?.record.entry.namespace === namespace;
    if (isBesideEntry) this.#gone(keyOf(record), resourceVersion);
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

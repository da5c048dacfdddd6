import { isDeepStrictEqual } from 'node:util';
import { reconcileRuns, runName } from '../../api/inventory/names.ts';
import { type KubeObject, keyOf, type ObjectName } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { Listeners } from '../../kit/listeners.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound, TransportError } from '../../kube/errors.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { Store } from '../../kube/store.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { InventoryStore, RecordChange, RunStore, Swap } from '../ports.ts';
import { type RunView, recordIn, runObject, specPatch } from './run-object.ts';

/** `key` is the text form of the record's key. Undefined if the ReconcileRun is invalid. */
export function runView(object: KubeObject): RunView | undefined {
  const stored = recordIn(object);
  const { uid } = object.metadata;
  if (!stored || !uid) return undefined;
  return { ...stored, key: keyTextOf(stored.record), uid, name: object.metadata.name };
}

const componentKeyOf = (record: RunRecord): ComponentKey => ({
  entryUid: record.entry.uid,
  component: record.component,
});
const keyTextOf = (record: RunRecord): string => keyText(componentKeyOf(record));
const runNameOf = ({ name, record }: RunView): ObjectName => ({ namespace: record.entry.namespace, name });

/**
 * Run records as ReconcileRun objects. A record counts only in the namespace of its entry, so that
 * users of another namespace cannot forge it.
 */
export class KubeRunStore implements RunStore {
  readonly #client: Client;
  readonly #store: Store<RunView>;
  readonly #entries: Pick<InventoryStore, 'find'>;
  /** In the namespace of their entry, as the watch reports them. */
  readonly #watchedRecords = new Map<string, RunView>();
  readonly #newest: WriteThroughCache<RunView>;
  /** Reported before their entry, by its UID and object key: the two watches are not ordered. */
  readonly #recordsWithoutEntry = new Map<string, Map<string, RunView>>();
  readonly #listeners = new Listeners<RecordChange>();

  /** `store` is the watch with the projection `runView`. */
  constructor(
    client: Client,
    store: Store<RunView>,
    entries: Pick<InventoryStore, 'find' | 'subscribe'>,
    clock: Clock,
  ) {
    this.#client = client;
    this.#store = store;
    this.#entries = entries;
    this.#newest = new WriteThroughCache({
      watched: (key) => this.#watchedRecords.get(key),
      uidOf: ({ uid }) => uid,
      // However late the watch is.
      trustMs: Number.POSITIVE_INFINITY,
      clock,
    });
    entries.subscribe((change) => {
      if (change.kind === 'changed') this.#entryAppeared(change.entry.ref.uid);
    });
    store.subscribe((event) => {
      if (event.type === 'deleted') this.#onDeleted(event.key, event.before);
      else this.#onWatched(event.key, event.now);
    });
  }

  find(key: ComponentKey): StoredRecord | undefined {
    return this.#newest.get(keyText(key));
  }

  subscribe(listener: (change: RecordChange) => void): () => void {
    for (const key of [...this.#watchedRecords.keys()]) {
      const stored = this.#newest.get(key);
      if (stored) listener({ kind: 'changed', stored });
    }
    return this.#listeners.add(listener);
  }

  whenSynced(signal?: AbortSignal): Promise<void> {
    return this.#store.whenSynced(signal);
  }

  async load(key: ComponentKey, signal: AbortSignal): Promise<StoredRecord | undefined> {
    const known = this.#newest.get(keyText(key));
    if (known) return this.#load(runNameOf(known), key.entryUid, signal);
    const ref = this.#entries.find(key.entryUid)?.ref;
    if (!ref) return undefined;
    return this.#load({ namespace: ref.namespace, name: runName(ref, key.component) }, key.entryUid, signal);
  }

  async swap(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap> {
    try {
      const write = () => (base ? this.#patch(next, base, signal) : this.#create(next, signal));
      const stored = await this.#newest.call(keyTextOf(next), async () => viewIn(await write()));
      return { kind: 'stored', stored };
    } catch (error) {
      const isLost = isConflict(error) || isAlreadyExists(error) || (base !== undefined && isNotFound(error));
      if (!isLost) throw error;
      return this.#resolveConflict(next, base, signal);
    }
  }

  async remove({ record, resourceVersion }: StoredRecord, signal: AbortSignal): Promise<void> {
    await this.#client.delete(reconcileRuns, this.#nameOf(record), { resourceVersion, signal });
    const newest = this.#newest.get(keyTextOf(record));
    if (!newest || isOlder(resourceVersion, newest.resourceVersion)) return;
    this.#newest.deleted(newest.key, newest.uid);
    this.#listeners.notify({ kind: 'gone', key: componentKeyOf(record) });
  }

  #patch(next: RunRecord, { resourceVersion }: StoredRecord, signal: AbortSignal): Promise<KubeObject> {
    const patch = { metadata: { resourceVersion }, spec: specPatch(next) };
    return this.#client.mergePatch(reconcileRuns, this.#nameOf(next), patch, { signal });
  }

  #create(next: RunRecord, signal: AbortSignal): Promise<KubeObject> {
    return this.#client.create(reconcileRuns, runObject(next), { signal });
  }

  /** Of the stored record, or for a new one. */
  #nameOf(record: RunRecord): ObjectName {
    const { entry, component } = record;
    const known = this.#newest.get(keyTextOf(record));
    return known ? runNameOf(known) : { namespace: entry.namespace, name: runName(entry, component) };
  }

  /**
   * Another process won, or this write succeeded and its answer was lost. A create rejects with
   * `NameTaken` if an invalid record or that of another (earlier) entry has the name.
   */
  async #resolveConflict(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap> {
    const name = this.#nameOf(next);
    const { uid } = next.entry;
    const stored = await this.#newest.call(keyTextOf(next), () => this.#load(name, uid, signal));
    if (!stored && !base && (await findObject(this.#client, reconcileRuns, name, { signal }))) {
      const message = `ReconcileRun ${keyOf(name)} belongs to another entry, or is invalid; the server waits until it is deleted; if the garbage collector does not delete it, run kubectl delete reconcilerun ${name.name} -n ${name.namespace}`;
      throw new CodedError('NameTaken', message);
    }
    const isThisWrite = stored && stored.resourceVersion !== base?.resourceVersion && sameSpec(stored.record, next);
    return isThisWrite ? { kind: 'stored', stored } : { kind: 'conflict', stored };
  }

  /** Live. Undefined also if the record is invalid or of another entry. */
  async #load(name: ObjectName, entryUid: string, signal: AbortSignal): Promise<RunView | undefined> {
    const found = await findObject(this.#client, reconcileRuns, name, { signal });
    const view = found && runView(found);
    return view?.record.entry.uid === entryUid ? view : undefined;
  }

  #onWatched(key: string, view: RunView): void {
    const { uid, namespace } = view.record.entry;
    const entry = this.#entries.find(uid);
    if (entry?.ref.namespace === namespace) this.#observe(view);
    if (entry) return;
    const waiting = this.#recordsWithoutEntry.get(uid) ?? new Map<string, RunView>();
    this.#recordsWithoutEntry.set(uid, waiting.set(key, view));
  }

  #entryAppeared(entryUid: string): void {
    const waiting = this.#recordsWithoutEntry.get(entryUid);
    this.#recordsWithoutEntry.delete(entryUid);
    for (const [key, view] of waiting ?? []) this.#onWatched(key, view);
  }

  #onDeleted(key: string, view: RunView): void {
    const { uid } = view.record.entry;
    const waiting = this.#recordsWithoutEntry.get(uid);
    if (waiting?.delete(key) && waiting.size === 0) this.#recordsWithoutEntry.delete(uid);
    // The watch may report a delete before it reports the creation of that record or of its entry.
    if ((this.#watchedRecords.get(view.key) ?? this.#newest.get(view.key))?.uid !== view.uid) return;
    const wasKnown = this.#newest.get(view.key) !== undefined;
    this.#watchedRecords.delete(view.key);
    this.#newest.observe({ type: 'deleted', key: view.key, before: view });
    const isGone = wasKnown && !this.#newest.get(view.key);
    if (isGone) this.#listeners.notify({ kind: 'gone', key: componentKeyOf(view.record) });
  }

  #observe(view: RunView): void {
    this.#watchedRecords.set(view.key, view);
    if (this.#newest.get(view.key) === view) this.#listeners.notify({ kind: 'changed', stored: view });
  }
}

function viewIn(object: KubeObject): RunView {
  const stored = runView(object);
  if (stored) return stored;
  throw new TransportError(
    `the API server's answer for ReconcileRun ${object.metadata.namespace}/${object.metadata.name} is not valid; install the CRDs of the version of drawbridge that runs: kubectl apply -f charts/drawbridge/files/inventory-crds`,
    undefined,
    false,
  );
}

/** In their stored form. */
function sameSpec(a: RunRecord, b: RunRecord): boolean {
  const storedForm = (record: RunRecord): unknown => JSON.parse(JSON.stringify(specPatch(record)));
  return isDeepStrictEqual(storedForm(a), storedForm(b));
}

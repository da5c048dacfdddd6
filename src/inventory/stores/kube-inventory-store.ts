import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { type ClusterInventory, clusterInventoryKind } from '../../api/inventory/cluster-inventory.ts';
import {
  abandonAnnotation,
  abandonedByAnnotation,
  clusterInventories,
  forceAnnotation,
} from '../../api/inventory/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Projected, Store, StoreEvent } from '../../kube/store.ts';
import type { Entry, EntryContent, EntryRef } from '../entry.ts';
import { entryBytes } from '../policy/entry-size.ts';
import type { EntryChange, InventoryStore } from '../ports.ts';

interface EntryView extends Entry, Projected {}

/** Of the annotations that an `Entry` keeps. */
const annotationPrefixes = [forceAnnotation(''), abandonAnnotation(''), abandonedByAnnotation('')];

/** Undefined if the ClusterInventory is invalid. */
export function entryView(object: KubeObject): EntryView | undefined {
  const read = readObject(clusterInventoryKind, object);
  if (!read.ok) return undefined;
  const { metadata } = read.value;
  const { namespace, name, uid, resourceVersion } = metadata;
  if (!namespace || !uid || !resourceVersion) return undefined;
  return viewOf(read.value, { namespace, name, uid }, resourceVersion, object);
}

function viewOf(
  { metadata, spec, status }: ClusterInventory,
  ref: Entry['ref'],
  resourceVersion: string,
  object: KubeObject,
): EntryView {
  // The unvalidated spec: components may define fields that the schema does not contain.
  const content = new Packed<EntryContent>({ spec: object.spec, status: { outputs: status?.outputs ?? {} } });
  return {
    key: keyOf(ref),
    uid: ref.uid,
    resourceVersion,
    ref,
    deleting: metadata.deletionTimestamp !== undefined,
    finalizers: metadata.finalizers ?? [],
    labels: metadata.labels ?? {},
    annotations: annotationsOf(metadata.annotations ?? {}),
    mode: spec.mode,
    suspended: spec.suspend,
    kubeconfigSecretRef: spec.kubeconfigSecretRef,
    kubeconfigSetBy: spec.kubeconfigSetBy,
    disabled: disabledIn(spec.components ?? {}),
    named: Object.keys(spec.components ?? {}),
    bytes: entryBytes(object),
    get content() {
      return content.value;
    },
    components: status?.components ?? [],
    waitingFor: status?.waitingFor,
    conditions: status?.conditions ?? [],
  };
}

function annotationsOf(all: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => annotationPrefixes.some((prefix) => name.startsWith(prefix))),
  );
}

const nothingDisabled: ReadonlySet<string> = new Set();

function disabledIn(components: Readonly<Record<string, { readonly enabled: boolean }>>): ReadonlySet<string> {
  const disabled = Object.entries(components).filter(([, { enabled }]) => !enabled);
  return disabled.length === 0 ? nothingDisabled : new Set(disabled.map(([name]) => name));
}

/** The most recently unpacked ones. */
const unpacked = new RecentMap<Packed<unknown>, unknown>(64);

/** A rarely read JSON value, compressed. Each read may return another copy, so do not mutate it. */
class Packed<T> {
  readonly #bytes: string;

  constructor(value: T) {
    // One byte per character; the fixed overhead of a Buffer may exceed the content.
    this.#bytes = deflateRawSync(JSON.stringify(value), { level: 1 }).toString('latin1');
  }

  get value(): T {
    const cached = unpacked.get(this);
    if (cached !== undefined) return cached as T;
    const value = JSON.parse(inflateRawSync(Buffer.from(this.#bytes, 'latin1')).toString('utf8')) as T;
    unpacked.set(this, value);
    return value;
  }
}

export class KubeInventoryStore implements InventoryStore {
  readonly #client: Client;
  readonly #store: Store<EntryView>;
  readonly #byUid = new Map<string, EntryView>();

  /** `store` is the watch with the projection `entryView`. */
  constructor(client: Client, store: Store<EntryView>) {
    this.#client = client;
    this.#store = store;
    // First, so that later listeners find the changed entry.
    store.subscribe((event) => {
      if (event.type === 'deleted') this.#byUid.delete(event.before.uid);
      else this.#byUid.set(event.now.uid, event.now);
    });
  }

  find(uid: string): Entry | undefined {
    return this.#byUid.get(uid);
  }

  list(): Iterable<Entry> {
    return this.#byUid.values();
  }

  subscribe(listener: (change: EntryChange) => void): () => void {
    return this.#store.subscribe((event) => listener(changeOf(event)));
  }

  whenSynced(signal?: AbortSignal): Promise<void> {
    return this.#store.whenSynced(signal);
  }

  async get(ref: EntryRef, signal: AbortSignal): Promise<Entry | undefined> {
    const found = await findObject(this.#client, clusterInventories, ref, { signal });
    const view = found && entryView(found);
    return view?.uid === ref.uid ? view : undefined;
  }

  async patch(
    ref: EntryRef,
    part: 'metadata' | 'status',
    patch: Readonly<Record<string, unknown>>,
    { resourceVersion, signal }: { readonly resourceVersion: string; readonly signal: AbortSignal },
  ): Promise<Entry> {
    const metadata = { uid: ref.uid, resourceVersion };
    const body = part === 'status' ? { ...patch, metadata } : { metadata: { ...metadataOf(patch), ...metadata } };
    const options = { signal, ...(part === 'status' ? { subresource: 'status' } : {}) };
    return entryIn(await this.#client.mergePatch(clusterInventories, ref, body, options));
  }
}

function metadataOf(patch: Readonly<Record<string, unknown>>): object {
  const { metadata } = patch;
  return typeof metadata === 'object' && metadata !== null ? metadata : {};
}

/** A plain Error is not retryable: the write succeeded, and a retry would get the same answer. */
function entryIn(object: KubeObject): Entry {
  const view = entryView(object);
  if (view) return view;
  throw new Error(
    `the API server's answer for ClusterInventory ${keyOf(object.metadata)} is not valid; install the CRDs of the version of drawbridge that runs: kubectl apply -f charts/drawbridge/files/inventory-crds`,
  );
}

function changeOf(event: StoreEvent<EntryView>): EntryChange {
  if (event.type === 'deleted') return { kind: 'gone', entry: event.before };
  return { kind: 'changed', entry: event.now, before: event.type === 'updated' ? event.before : undefined };
}

import { isDeepStrictEqual } from 'node:util';
import type { ClusterInventory } from '../../../src/api/inventory/cluster-inventory.ts';
import { inventoryGroup } from '../../../src/api/inventory/names.ts';
import type { RunRecord, StoredRecord } from '../../../src/inventory/core/run-record.ts';
import type { Entry, EntryRef } from '../../../src/inventory/entry.ts';
import { type ComponentKey, keyText } from '../../../src/inventory/key.ts';
import type { EntryChange, InventoryStore, RecordChange, RunStore, Swap } from '../../../src/inventory/ports.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { entryOf } from './entry-of.ts';
import { MemoryWatch } from './memory-watch.ts';
import { mergePatch } from './merge-patch.ts';
import { plainCopy } from './plain-copy.ts';

export type StoreOperation = 'entry.get' | 'entry.patch' | 'run.load' | 'run.swap' | 'run.remove';

/** Fields of an entry in a test; the others have defaults. */
export interface EntrySeed {
  readonly namespace?: string;
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: Partial<ClusterInventory['spec']>;
}

/** Simulated network between a manager and the API server. */
export interface Link {
  /** Sends a request. `act` may be executed or lost, and its answer may be lost. `compared`: the request is a compare-and-swap. */
  request<T>(act: () => T, compared: boolean): Promise<T>;
  /** Delivers a watch event, in order. An event whose callback is never called is lost. */
  deliver(event: () => void): void;
}

interface Name {
  readonly namespace?: string;
  readonly name: string;
}

/**
 * An in-memory API server with entries and records: resource versions, preconditions, finalizers, and the CRD rules. Each manager opens its
 * own stores with a watch that a test can pause, drop, and relist.
 */
export class MemoryInventory {
  readonly #entries = new Map<string, { object: ClusterInventory; view: Entry }>();
  readonly #records = new Map<string, StoredRecord>();
  readonly #entryWatches = new Set<MemoryWatch<Entry, EntryChange>>();
  readonly #recordWatches = new Set<MemoryWatch<StoredRecord, RecordChange>>();
  #version = 0;
  #uids = 0;

  /**
   * Called before and after each store operation. An error is returned to the caller; with `after`, the operation was executed but its
   * answer is lost.
   */
  fault: (operation: StoreOperation, when: 'before' | 'after') => Error | undefined | Promise<Error | undefined> = () =>
    undefined;
  /** Called for each write. */
  onRecord: (key: string, now: RunRecord | undefined, before: RunRecord | undefined) => void = () => {};
  onEntry: (now: Entry, before: Entry | undefined, isGone: boolean) => void = () => {};

  /** Creates an entry like a user. */
  create({ namespace = 'inv', name, labels = {}, annotations = {}, spec = {} }: EntrySeed): Entry {
    if (this.#entries.has(`${namespace}/${name}`)) throw new ApiError(409, 'AlreadyExists', `${name} exists`);
    this.#uids += 1;
    const uid = `00000000-0000-4000-8000-${String(this.#uids).padStart(12, '0')}`;
    return this.#store({
      apiVersion: `${inventoryGroup}/v1alpha1`,
      kind: 'ClusterInventory',
      metadata: { namespace, name, uid, generation: 1, labels: { ...labels }, annotations: { ...annotations } },
      spec: { mode: 'managed', suspend: false, ...plainCopy(spec) },
    });
  }

  /** Changes an entry like a user; `change` mutates a copy. */
  edit(ref: Name, change: (object: ClusterInventory) => void): Entry {
    const { object } = this.#there(ref);
    const next = plainCopy(object);
    change(next);
    return this.#store(next, object);
  }

  setSpec(ref: Name, fields: Partial<ClusterInventory['spec']>): Entry {
    return this.edit(ref, ({ spec }) => void Object.assign(spec, fields));
  }

  annotate(ref: Name, annotations: Readonly<Record<string, string>>): Entry {
    return this.edit(ref, ({ metadata }) => void Object.assign(metadata, { annotations }));
  }

  setOutputs(ref: Name, outputs: Record<string, Record<string, unknown>>): Entry {
    return this.edit(ref, (object) => void Object.assign(object, { status: { ...object.status, outputs } }));
  }

  /** Deletes an entry by force, although it has finalizers. */
  deleteByForce(ref: Name): void {
    const gone = { finalizers: [], deletionTimestamp: '2026-11-21T10:00:00Z' };
    this.edit(ref, ({ metadata }) => void Object.assign(metadata, gone));
  }

  /** Deletes an entry; with finalizers it stays until they are removed. */
  delete(ref: Name): void {
    this.edit(ref, (object) => {
      object.metadata.deletionTimestamp ??= '2026-11-21T10:00:00Z';
    });
  }

  /** The stored entry, independent of any watch. */
  entry(ref: Name): Entry | undefined {
    return this.#entries.get(pathOf(ref))?.view;
  }

  entries(): readonly Entry[] {
    return [...this.#entries.values()].map(({ view }) => view);
  }

  record(key: ComponentKey): StoredRecord | undefined {
    return this.#records.get(keyText(key));
  }

  records(): readonly StoredRecord[] {
    return [...this.#records.values()];
  }

  /** Opens the stores of another manager. Without a `link`, everything is immediate. */
  open(link?: Link): MemoryStores {
    const entries = new MemoryWatch<Entry, EntryChange>((now, before) => {
      if (now) return { kind: 'changed', entry: now, before };
      return { kind: 'gone', entry: before as Entry };
    }, link?.deliver);
    const records = new MemoryWatch<StoredRecord, RecordChange>((now, before) => {
      if (now) return { kind: 'changed', stored: now };
      return { kind: 'gone', key: keyOf((before as StoredRecord).record) };
    }, link?.deliver);
    for (const { view } of this.#entries.values()) entries.setSeen(view.ref.uid, view);
    for (const [key, stored] of this.#records) records.setSeen(key, stored);
    this.#entryWatches.add(entries);
    this.#recordWatches.add(records);
    return {
      entries: this.#inventoryStore(entries, link),
      runs: this.#runStore(records, link),
      pause: () => {
        entries.pause();
        records.pause();
      },
      resume: (which) => {
        if (which !== 'records') entries.resume();
        records.resume();
      },
      unheard: (change) => entries.withoutEvents(change),
      relist: () => {
        entries.relist(new Map([...this.#entries.values()].map(({ view }) => [view.ref.uid, view])));
        records.relist(this.#records);
      },
      close: () => {
        this.#entryWatches.delete(entries);
        this.#recordWatches.delete(records);
      },
    };
  }

  #inventoryStore(watch: MemoryWatch<Entry, EntryChange>, link: Link | undefined): InventoryStore {
    return {
      find: (uid) => watch.find(uid),
      list: () => watch.list(),
      subscribe: (listener) => watch.subscribe(listener),
      whenSynced: () => Promise.resolve(),
      get: (ref, signal) =>
        this.#call('entry.get', { link, signal, compared: true }, () => {
          const view = this.entry(ref);
          return view?.ref.uid === ref.uid ? view : undefined;
        }),
      patch: (ref, part, patch, { resourceVersion, signal }) =>
        this.#call('entry.patch', { link, signal, compared: false }, () =>
          this.#patch(ref, part, patch, resourceVersion),
        ),
    };
  }

  #runStore(watch: MemoryWatch<StoredRecord, RecordChange>, link: Link | undefined): RunStore {
    return {
      find: (key) => watch.find(keyText(key)),
      subscribe: (listener) => watch.subscribe(listener),
      whenSynced: () => Promise.resolve(),
      load: (key, signal) =>
        this.#call('run.load', { link, signal, compared: true }, () => this.#records.get(keyText(key))),
      swap: async (next, base, signal) => {
        const route = { link, signal, compared: base !== undefined };
        const swap = await this.#call('run.swap', route, () => this.#swap(next, base));
        // A successful answer updates the writer's view; after a lost answer, only the watch does.
        if (swap.stored) watch.recordWrite(keyText(keyOf(swap.stored.record)), swap.stored);
        return swap;
      },
      remove: async (stored, signal) => {
        const key = keyText(keyOf(stored.record));
        await this.#call('run.remove', { link, signal, compared: false }, () => {
          const there = this.#records.get(key);
          if (there && there.resourceVersion !== stored.resourceVersion) {
            throw new ApiError(409, 'Conflict', 'it is another version');
          }
          if (there) this.#putRecord(key, undefined);
        });
        watch.removed(key, stored.resourceVersion);
      },
    };
  }

  async #call<T>(operation: StoreOperation, { link, signal, compared }: Route, act: () => T): Promise<T> {
    signal.throwIfAborted();
    if (link) return link.request(act, compared);
    const before = await this.fault(operation, 'before');
    if (before) throw before;
    signal.throwIfAborted();
    const result = act();
    const after = await this.fault(operation, 'after');
    if (after) throw after;
    return result;
  }

  #patch(ref: EntryRef, part: 'metadata' | 'status', patch: unknown, resourceVersion: string): Entry {
    const { object, view } = this.#there(ref);
    if (resourceVersion !== view.resourceVersion) {
      throw new ApiError(409, 'Conflict', `${ref.name} is at ${view.resourceVersion}`);
    }
    const merged = mergePatch(object, patch) as ClusterInventory;
    const next = plainCopy(object);
    if (part === 'status') {
      if (merged.status) next.status = plainCopy(merged.status);
    } else {
      next.metadata = plainCopy(merged.metadata);
    }
    return this.#store(next, object);
  }

  #swap(next: RunRecord, base: StoredRecord | undefined): Swap {
    const key = keyText(keyOf(next));
    const stored = this.#records.get(key);
    if (stored?.resourceVersion !== base?.resourceVersion) return { kind: 'conflict', stored };
    const hasCredential = next.credentialId !== undefined || next.previousCredential !== undefined;
    if (hasCredential && next.phase !== 'Running') {
      throw new ApiError(422, 'Invalid', 'credentialID and previousCredentialID are allowed only in phase Running');
    }
    if (stored && next.seq < stored.record.seq) throw new ApiError(422, 'Invalid', 'seq must not decrease');
    const written = this.#putRecord(key, plainCopy(next));
    // A record of a deleted entry is garbage-collected.
    const isOwned = [...this.#entries.values()].some(({ view }) => view.ref.uid === next.entry.uid);
    if (!isOwned) this.#putRecord(key, undefined);
    return { kind: 'stored', stored: written };
  }

  #putRecord(key: string, record: undefined): undefined;
  #putRecord(key: string, record: RunRecord): StoredRecord;
  #putRecord(key: string, record: RunRecord | undefined): StoredRecord | undefined {
    const resourceVersion = this.#nextVersion();
    const stored = record && { record, resourceVersion };
    const before = this.#records.get(key)?.record;
    if (stored) this.#records.set(key, stored);
    else this.#records.delete(key);
    this.onRecord(key, record, before);
    for (const watch of this.#recordWatches) watch.push(key, stored, resourceVersion);
    return stored;
  }

  #store(object: ClusterInventory, before?: ClusterInventory): Entry {
    const path = pathOf({ namespace: object.metadata.namespace ?? '', name: object.metadata.name });
    const there = this.#entries.get(path);
    // Like the API server, a write without changes emits no event.
    if (there && before && isDeepStrictEqual(object, before)) return there.view;
    if (before && !isDeepStrictEqual(object.spec, before.spec)) {
      object.metadata.generation = (before.metadata.generation ?? 1) + 1;
    }
    object.metadata.resourceVersion = this.#nextVersion();
    const view = entryOf(object);
    if (view.deleting && view.finalizers.length === 0) {
      this.#entries.delete(path);
      this.onEntry(view, there?.view, true);
      for (const watch of this.#entryWatches) watch.push(view.ref.uid, undefined, view.resourceVersion);
      for (const [key, { record }] of this.#records) {
        if (record.entry.uid === view.ref.uid) this.#putRecord(key, undefined);
      }
      return view;
    }
    this.#entries.set(path, { object, view });
    this.onEntry(view, there?.view, false);
    for (const watch of this.#entryWatches) watch.push(view.ref.uid, view, view.resourceVersion);
    return view;
  }

  #there(ref: Name): { object: ClusterInventory; view: Entry } {
    const entry = this.#entries.get(pathOf(ref));
    if (!entry) throw new ApiError(404, 'NotFound', `${ref.name} does not exist`);
    return entry;
  }

  #nextVersion(): string {
    this.#version += 1;
    return String(this.#version);
  }
}

/** The stores of one manager. */
export interface MemoryStores {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  /** Pauses the watches, so that `find` and `list` become stale. */
  pause(): void;
  /** Resumes the watches of entries and records, or of records only; missed events arrive in order. */
  resume(which?: 'records'): void;
  /** Drops missed events and relists. */
  relist(): void;
  /** Applies `change` without watch events; reads see it. */
  unheard(change: () => void): void;
  close(): void;
}

/** Path of a manager's request. */
interface Route {
  readonly link: Link | undefined;
  readonly signal: AbortSignal;
  readonly compared: boolean;
}

const pathOf = ({ namespace = 'inv', name }: { readonly namespace?: string; readonly name: string }): string =>
  `${namespace}/${name}`;
const keyOf = (record: RunRecord): ComponentKey => ({ entryUid: record.entry.uid, component: record.component });

import type { BindingDeps } from '../deps.ts';
import type { ObjectSyncer, RunningSyncer, RunningSyncers } from '../service-binding/running-syncers.ts';
import type { SyncMode } from '../sync-engine/kind.ts';

export interface WantedSyncer {
  /** Digest of the syncer's inputs. When it changes, the syncer is restarted. */
  readonly fingerprint: string;
  /** The CustomResourceDefinition whose objects it syncs; undefined for claimed objects. */
  readonly crd: string | undefined;
  readonly mode: SyncMode;
  /** Opens the syncer. It calls `onChange` when its problems or its progress may have changed. */
  open(onChange: () => void): ObjectSyncer;
}

interface Running extends RunningSyncer {
  readonly fingerprint: string;
}

/** The syncers of one session, by export and by name within it. */
export class SyncerSet {
  readonly #running: BindingDeps['running'];
  readonly #syncers: RunningSyncers;
  readonly #exports = new Map<string, Map<string, Running>>();

  constructor({ running, syncers }: { readonly running: BindingDeps['running']; readonly syncers: RunningSyncers }) {
    this.#running = running;
    this.#syncers = syncers;
  }

  /**
   * Starts, stops, and restarts the syncers of an export so that exactly `wanted` runs. Syncers with an unchanged fingerprint keep running.
   * Resolves when the stopped ones have settled. Rejects if a syncer could not be opened, after starting the others.
   */
  async apply(exportKey: string, binding: string, wanted: ReadonlyMap<string, WantedSyncer>): Promise<void> {
    const current = this.#exports.get(exportKey) ?? new Map<string, Running>();
    const stale = [...current].filter(([name, { fingerprint }]) => wanted.get(name)?.fingerprint !== fingerprint);
    await Promise.all(stale.map(([name, running]) => this.#stop(current, name, running)));
    const failures: unknown[] = [];
    const onChange = (): void => this.#syncers.notifyChanged(binding);
    for (const [name, { fingerprint, crd, mode, open }] of wanted) {
      if (current.has(name)) continue;
      try {
        current.set(name, this.#start({ fingerprint, binding, crd, mode, syncer: open(onChange) }));
      } catch (error) {
        failures.push(error);
      }
    }
    if (current.size > 0) this.#exports.set(exportKey, current);
    else this.#exports.delete(exportKey);
    if (failures.length > 0) throw failures[0];
  }

  /** Reconciles every object of an export again. */
  resync(exportKey: string): void {
    for (const { syncer } of this.#exports.get(exportKey)?.values() ?? []) syncer.resync();
  }

  /** Allows the deletes that are held back. */
  allowDeletes(exportKey: string): void {
    for (const { syncer } of this.#exports.get(exportKey)?.values() ?? []) syncer.allowDeletes?.();
  }

  async closeAll(): Promise<void> {
    const all = [...this.#exports.values()];
    this.#exports.clear();
    await Promise.all(
      all.flatMap((present) => [...present].map(([name, running]) => this.#stop(present, name, running))),
    );
  }

  #start(running: Running): Running {
    this.#syncers.add(running);
    for (const controller of running.syncer.controllers) this.#running.add(controller);
    return running;
  }

  async #stop(present: Map<string, Running>, name: string, running: Running): Promise<void> {
    const { syncer } = running;
    await Promise.all(syncer.controllers.map((controller) => this.#running.remove(controller)));
    syncer.close();
    present.delete(name);
    this.#syncers.delete(running);
  }
}

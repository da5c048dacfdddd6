import type { BindingDeps } from '../deps.ts';
import type { ObjectSyncer, RunningSyncer, RunningSyncers } from '../service-binding/running-syncers.ts';

/** A syncer that should run. `SyncerSet.apply` starts it if it does not run yet. */
export interface WantedSyncer extends Pick<RunningSyncer, 'crd' | 'mode'> {
  /** The syncer's inputs as text. When it changes, `apply` restarts the syncer. */
  readonly fingerprint: string;
  /** Opens the syncer, which calls `onChange` when its state may have changed. */
  readonly open: (onChange: () => void) => ObjectSyncer;
}

interface StartedSyncer extends RunningSyncer {
  readonly fingerprint: string;
}

/** The syncers of one ProviderSession, by export, and by name within the export. */
export class SyncerSet {
  readonly #runningControllers: BindingDeps['runningControllers'];
  readonly #runningSyncers: RunningSyncers;
  readonly #exports = new Map<string, Map<string, StartedSyncer>>();

  constructor({
    runningControllers,
    syncers,
  }: {
    readonly runningControllers: BindingDeps['runningControllers'];
    readonly syncers: RunningSyncers;
  }) {
    this.#runningControllers = runningControllers;
    this.#runningSyncers = syncers;
  }

  /**
   * Stops the syncers of an export that are not wanted or whose fingerprint changed, waits for their last reconciles, and then starts the
   * missing syncers. `exportKey`: `<cluster namespace>/<export>`; `binding`: name of its APIServiceBinding; `wanted`: the syncers by name
   * within the export. Do not call `apply` again for an export before the last call for it has settled.
   *
   * If a syncer cannot be opened, starts the other syncers, and rejects with the first error.
   */
  async apply(exportKey: string, binding: string, wanted: ReadonlyMap<string, WantedSyncer>): Promise<void> {
    const started = this.#exports.get(exportKey) ?? new Map<string, StartedSyncer>();
    const stale = [...started].filter(([name, { fingerprint }]) => wanted.get(name)?.fingerprint !== fingerprint);
    await Promise.all(stale.map(([name, syncer]) => this.#stop(started, name, syncer)));
    const failures: unknown[] = [];
    const onChange = (): void => this.#runningSyncers.notifyChanged(binding);
    for (const [name, { fingerprint, crd, mode, open }] of wanted) {
      if (started.has(name)) continue;
      try {
        started.set(name, this.#start({ fingerprint, binding, crd, mode, syncer: open(onChange) }));
      } catch (error) {
        failures.push(error);
      }
    }
    if (started.size > 0) this.#exports.set(exportKey, started);
    else this.#exports.delete(exportKey);
    if (failures.length > 0) throw failures[0];
  }

  /** Reconciles every object of an export again, and retries failed calls at once. */
  resync(exportKey: string): void {
    for (const { syncer } of this.#exports.get(exportKey)?.values() ?? []) syncer.resync();
  }

  /** Allows the syncers of an export to send the deletes that they hold back because there are too many at once. */
  allowDeletes(exportKey: string): void {
    for (const { syncer } of this.#exports.get(exportKey)?.values() ?? []) syncer.allowDeletes?.();
  }

  /** Stops all syncers, and resolves when their last reconciles have settled. Call it only when no `apply` is pending. */
  async closeAll(): Promise<void> {
    const all = [...this.#exports.values()];
    this.#exports.clear();
    await Promise.all(
      all.flatMap((started) => [...started].map(([name, syncer]) => this.#stop(started, name, syncer))),
    );
  }

  #start(started: StartedSyncer): StartedSyncer {
    this.#runningSyncers.add(started);
    for (const controller of started.syncer.controllers) this.#runningControllers.add(controller);
    return started;
  }

  async #stop(syncersOfExport: Map<string, StartedSyncer>, name: string, started: StartedSyncer): Promise<void> {
    const { syncer } = started;
    await Promise.all(syncer.controllers.map((controller) => this.#runningControllers.remove(controller)));
    syncer.close();
    syncersOfExport.delete(name);
    this.#runningSyncers.delete(started);
  }
}

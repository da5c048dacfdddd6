import type { BindingDeps } from '../deps.ts';
import type { RunningSyncer, RunningSyncers } from '../service-binding/running-syncers.ts';
import type { Syncer } from '../sync-engine/syncer.ts';

export interface WantedSyncer extends Pick<RunningSyncer, 'crd' | 'mode'> {
  /** A change of this text restarts the syncer. */
  readonly fingerprint: string;
  readonly open: (onChange: () => void) => Syncer;
}

interface StartedSyncer extends RunningSyncer {
  readonly fingerprint: string;
}

/** Of one ProviderSession, by export and name. */
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
   * Stops what is not wanted or has changed, waits for that, and starts what is missing. One call
   * at a time for an export. Rejects with the first error, after starting the others.
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

  /** Also retries failed calls at once. */
  resync(exportKey: string): void {
    for (const { syncer } of this.#exports.get(exportKey)?.values() ?? []) syncer.resync();
  }

  allowDeletes(exportKey: string): void {
    for (const { syncer } of this.#exports.get(exportKey)?.values() ?? []) syncer.allowDeletes();
  }

  /** Waits for the last reconciles. No `apply` may be pending. */
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

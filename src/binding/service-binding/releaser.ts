import type { CrdView } from '../stores/views.ts';
import { type ReleaseDeps, releaseObjects } from './release-objects.ts';

/** Releases the objects of each CustomResourceDefinition once, until something synchronises them again. */
export class Releaser {
  readonly #deps: ReleaseDeps;
  /** uids of definitions. */
  readonly #released = new Set<string>();

  constructor(deps: ReleaseDeps) {
    this.#deps = deps;
  }

  /** Those of `crds` that have not been released. */
  left(crds: readonly CrdView[]): CrdView[] {
    return crds.filter(({ uid }) => !this.#released.has(uid));
  }

  async release(crds: readonly CrdView[], signal: AbortSignal): Promise<void> {
    for (const { name, uid } of this.left(crds)) {
      await releaseObjects(this.#deps, name, signal);
      this.#released.add(uid);
    }
  }

  /** The objects of these may carry our finalizer again. */
  forget(crds: readonly CrdView[]): void {
    for (const { uid } of crds) this.#released.delete(uid);
  }
}

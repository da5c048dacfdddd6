import type { KubeObject } from '../../api/object.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { Projected } from '../../kube/store.ts';

/**
 * What was written and is not in the store yet. To decide anew from the older state would only run into a conflict; the event of
 * the write brings the key back.
 */
export class UnseenWrites {
  readonly #versions = new Map<string, string>();

  wrote({ metadata: { uid, resourceVersion } }: KubeObject): void {
    if (uid && resourceVersion) this.#versions.set(uid, resourceVersion);
  }

  /** True while the store lags behind. */
  hides({ uid, resourceVersion }: Projected): boolean {
    const written = this.#versions.get(uid);
    if (written !== undefined && isOlder(resourceVersion, written)) return true;
    this.#versions.delete(uid);
    return false;
  }

  forget(uid: string): void {
    this.#versions.delete(uid);
  }
}

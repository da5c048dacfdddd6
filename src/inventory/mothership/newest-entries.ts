import { isOlder } from '../../kube/resource-version.ts';
import type { Entry } from '../entry.ts';

/** What we wrote of entries last, until the watch has it: what is compared with what stands there must not be older. */
export class NewestEntries {
  readonly #isThere: (uid: string) => boolean;
  readonly #written = new Map<string, Entry>();

  /** `isThere`: whether the watch has the entry. */
  constructor(isThere: (uid: string) => boolean) {
    this.#isThere = isThere;
  }

  wrote(entry: Entry): void {
    const { uid } = entry.ref;
    // An answer may come after the entry has gone and was forgotten.
    if (this.#isThere(uid)) this.#written.set(uid, this.of(entry));
  }

  /** `entry`, or what we wrote after it. */
  of(entry: Entry): Entry {
    const written = this.#written.get(entry.ref.uid);
    if (written && isOlder(entry.resourceVersion, written.resourceVersion)) return written;
    this.#written.delete(entry.ref.uid);
    return entry;
  }

  forget(uid: string): void {
    this.#written.delete(uid);
  }

  clear(): void {
    this.#written.clear();
  }
}

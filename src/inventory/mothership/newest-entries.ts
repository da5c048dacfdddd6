import { isOlder } from '../../kube/resource-version.ts';
import type { Entry } from '../entry.ts';

/** What we wrote of entries last, until the watch has it: what is compared with what stands there must not be older. */
export class NewestEntries {
  readonly #written = new Map<string, Entry>();

  wrote(entry: Entry): void {
    this.#written.set(entry.ref.uid, this.of(entry));
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

import { type ComponentKey, keyText } from '../key.ts';
import { KeyLoop } from './key-loop.ts';
import type { Work } from './work.ts';

/** The keys that this process looks after while it leads. */
export class Loops {
  readonly #work: Work;
  readonly #byKey = new Map<string, KeyLoop>();
  readonly #byEntry = new Map<string, Set<KeyLoop>>();

  constructor(work: Work) {
    this.#work = work;
  }

  get(text: string): KeyLoop | undefined {
    return this.#byKey.get(text);
  }

  /** Begins it if need be. */
  of(key: ComponentKey): KeyLoop {
    const text = keyText(key);
    const known = this.#byKey.get(text);
    if (known) return known;
    const loop = new KeyLoop(key, this.#work);
    this.#byKey.set(loop.text, loop);
    const siblings = this.#byEntry.get(key.entryUid) ?? new Set();
    siblings.add(loop);
    this.#byEntry.set(key.entryUid, siblings);
    return loop;
  }

  ofEntry(entryUid: string): Iterable<KeyLoop> {
    return this.#byEntry.get(entryUid) ?? [];
  }

  all(): Iterable<KeyLoop> {
    return this.#byKey.values();
  }

  drop(key: ComponentKey): void {
    const loop = this.#byKey.get(keyText(key));
    if (!loop) return;
    this.#byKey.delete(loop.text);
    loop.drop();
    const siblings = this.#byEntry.get(key.entryUid);
    siblings?.delete(loop);
    if (siblings?.size === 0) this.#byEntry.delete(key.entryUid);
  }

  dropEntry(entryUid: string): void {
    for (const { key } of [...this.ofEntry(entryUid)]) this.drop(key);
  }
}

import { Memory } from '../core/memory.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { Registration } from '../registration.ts';

export class KeyMemory extends Memory {
  readonly key: ComponentKey;
  /** As the work queue and `Limits` use it. */
  readonly text: string;
  /** The last known one: runs may outlive the registration. */
  registration: Registration | undefined;
  /** The entry no longer exists. */
  isDropped = false;

  constructor(key: ComponentKey) {
    super();
    this.key = key;
    this.text = keyText(key);
  }
}

/** The memory of each key that has a record, or may get one. */
export class Memories {
  readonly #byText = new Map<string, KeyMemory>();
  readonly #byEntry = new Map<string, Set<KeyMemory>>();

  get(text: string): KeyMemory | undefined {
    return this.#byText.get(text);
  }

  of(key: ComponentKey): KeyMemory {
    const existing = this.#byText.get(keyText(key));
    if (existing) return existing;
    const memory = new KeyMemory(key);
    this.#byText.set(memory.text, memory);
    const siblings = this.#byEntry.get(key.entryUid) ?? new Set();
    this.#byEntry.set(key.entryUid, siblings.add(memory));
    return memory;
  }

  ofEntry(entryUid: string): Iterable<KeyMemory> {
    return this.#byEntry.get(entryUid) ?? [];
  }

  all(): Iterable<KeyMemory> {
    return this.#byText.values();
  }

  /** Returns the dropped ones. */
  dropEntry(entryUid: string): Iterable<KeyMemory> {
    const dropped = this.ofEntry(entryUid);
    this.#byEntry.delete(entryUid);
    for (const memory of dropped) {
      memory.isDropped = true;
      this.#byText.delete(memory.text);
    }
    return dropped;
  }
}

import { Memory } from '../core/memory.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { Registration } from '../registration.ts';

export class KeyMemory extends Memory {
  readonly key: ComponentKey;
  /** As the work queue and `Limits` use it. */
  readonly text: string;
  /** The last known one: runs may outlive the registration. */
  registration: Registration | undefined;
  /** The last `digestInputs`, of this version of the entry. */
  digested: { readonly version: string; readonly registration: Registration; readonly digest: string } | undefined;
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
  /** Keys with an unanswered call, possibly of a dropped memory. */
  readonly #calling = new Set<string>();

  get(text: string): KeyMemory | undefined {
    return this.#byText.get(text);
  }

  of(key: ComponentKey): KeyMemory {
    const existing = this.#byText.get(keyText(key));
    if (existing) return existing;
    const memory = new KeyMemory(key);
    memory.isCalling = this.#calling.has(memory.text);
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

  /** Of a key, one call is unanswered at a time, even if its entry was gone meanwhile. */
  setCalling(memory: KeyMemory, isCalling: boolean): void {
    if (isCalling) this.#calling.add(memory.text);
    else this.#calling.delete(memory.text);
    for (const one of [memory, this.#byText.get(memory.text)]) if (one) one.isCalling = isCalling;
  }

  forget({ key, text }: KeyMemory): void {
    const memory = this.#byText.get(text);
    this.#byText.delete(text);
    if (memory) this.#byEntry.get(key.entryUid)?.delete(memory);
    if (this.#byEntry.get(key.entryUid)?.size === 0) this.#byEntry.delete(key.entryUid);
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

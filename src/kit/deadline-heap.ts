/** `index`: its position. */
interface Entry<K> {
  readonly key: K;
  at: number;
  /** Orders equal deadlines by when they were set. */
  order: number;
  index: number;
}

/** Keys by due time, equal times in the order of `set`. Each change costs O(log n). */
export class DeadlineHeap<K> {
  readonly #heap: Entry<K>[] = [];
  readonly #byKey = new Map<K, Entry<K>>();
  #order = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** Or moves it. */
  set(key: K, at: number): void {
    this.#order += 1;
    const existing = this.#byKey.get(key);
    if (existing) {
      existing.at = at;
      existing.order = this.#order;
      this.#settle(existing);
      return;
    }
    const entry: Entry<K> = { key, at, order: this.#order, index: this.#heap.length };
    this.#heap.push(entry);
    this.#byKey.set(key, entry);
    this.#rise(entry);
  }

  get(key: K): number | undefined {
    return this.#byKey.get(key)?.at;
  }

  /** Returns whether the heap had the key. */
  delete(key: K): boolean {
    const entry = this.#byKey.get(key);
    if (!entry) return false;
    this.#byKey.delete(key);
    const last = this.#heap.pop();
    if (last && last !== entry) {
      this.#place(last, entry.index);
      this.#settle(last);
    }
    return true;
  }

  clear(): void {
    this.#heap.length = 0;
    this.#byKey.clear();
  }

  peek(): { readonly key: K; readonly at: number } | undefined {
    return this.#heap[0];
  }

  /** All with `at <= now`, earliest first. */
  popDue(now: number): K[] {
    const due: K[] = [];
    for (let first = this.#heap[0]; first && first.at <= now; first = this.#heap[0]) {
      this.delete(first.key);
      due.push(first.key);
    }
    return due;
  }

  #settle(entry: Entry<K>): void {
    this.#rise(entry);
    this.#sink(entry);
  }

  #rise(entry: Entry<K>): void {
    while (entry.index > 0) {
      const parentIndex = (entry.index - 1) >> 1;
      const parent = this.#heap[parentIndex];
      if (!parent || !isBefore(entry, parent)) return;
      this.#place(parent, entry.index);
      this.#place(entry, parentIndex);
    }
  }

  #sink(entry: Entry<K>): void {
    for (;;) {
      const left = this.#heap[2 * entry.index + 1];
      const right = this.#heap[2 * entry.index + 2];
      const child = left && right && isBefore(right, left) ? right : left;
      if (!child || !isBefore(child, entry)) return;
      const childIndex = child.index;
      this.#place(child, entry.index);
      this.#place(entry, childIndex);
    }
  }

  #place(entry: Entry<K>, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }
}

function isBefore<K>(a: Entry<K>, b: Entry<K>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

export interface Timer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
  cancelled: boolean;
}

/** A binary heap of timers, by time and then by order of arrival. A cancelled timer is dropped when its time comes. */
export class TimerHeap {
  readonly #heap: Timer[] = [];
  #order = 0;
  #size = 0;

  /** The number of pending timers. */
  get size(): number {
    return this.#size;
  }

  /** Adds a timer; returns a function that cancels it. */
  add(at: number, callback: () => void): () => void {
    this.#order += 1;
    const timer = { at, order: this.#order, callback, cancelled: false };
    const heap = this.#heap;
    let index = heap.push(timer) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (!above || !isBefore(timer, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = timer;
    this.#size += 1;
    return () => {
      if (!timer.cancelled) this.#size -= 1;
      timer.cancelled = true;
    };
  }

  /** Removes and returns the first timer that is due by then; undefined if none is. */
  take(until: number): Timer | undefined {
    for (let first = this.#heap[0]; first && (first.cancelled || first.at <= until); first = this.#heap[0]) {
      this.#pop();
      if (first.cancelled) continue;
      first.cancelled = true;
      this.#size -= 1;
      return first;
    }
    return undefined;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const left = heap[child];
      if (!left) break;
      const right = heap[child + 1];
      if (right && isBefore(right, left)) child += 1;
      const least = heap[child];
      if (!least || !isBefore(least, last)) break;
      heap[index] = least;
      index = child;
    }
    heap[index] = last;
  }
}

const isBefore = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

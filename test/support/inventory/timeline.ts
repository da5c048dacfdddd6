interface Due {
  readonly at: number;
  readonly order: number;
  readonly act: () => void;
}

/** Simulated time without promises: thousands of schedules a second. Milliseconds. */
export class Timeline {
  now = 0;
  #order = 0;
  /** A binary heap by time, then by order of arrival. */
  readonly #heap: Due[] = [];

  after(delayMs: number, act: () => void): void {
    this.#order += 1;
    const due = { at: this.now + Math.max(0, delayMs), order: this.#order, act };
    const heap = this.#heap;
    let index = heap.push(due) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (!above || !isBefore(due, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = due;
  }

  /** Until that instant, or until nothing is left to happen. */
  runUntil(until: number, limit: number): number {
    let events = 0;
    for (let first = this.#heap[0]; first && first.at <= until; first = this.#heap[0]) {
      events += 1;
      if (events > limit) throw new Error(`I21: more than ${limit} events: a busy loop`);
      this.#pop();
      this.now = first.at;
      first.act();
    }
    this.now = until;
    return events;
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

const isBefore = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** Returns a part to the budget. A second call has no effect. */
type Release = () => void;

/** Limits of the budget, in its unit, such as connections or bytes. */
interface FairShareOptions {
  /** Maximum that all sources may have together. */
  readonly total: number;
  /** Maximum that one source may have. Default: the whole budget. */
  readonly perSource?: number;
}

/** What a source took in one call of `acquire`. */
interface Part {
  readonly source: string;
  readonly amount: number;
  readonly onEvicted: () => void;
  readonly isIdle: () => boolean;
}

/** The parts that one source has, oldest first, and their sum. */
interface Share {
  amount: number;
  readonly parts: Set<Part>;
}

/**
 * A budget of connections or bytes that sources, such as client addresses, share. While the budget has room, a source takes parts up to
 * its own limit. Without room, a source that has little evicts parts of the source that has the most: idle parts first, oldest first.
 * So sources with many parts cannot exclude a source with few, however long they keep theirs. If evictions would not make enough room, no
 * part is evicted. A source may also replace a larger part of its own by a smaller one.
 */
export class FairShare {
  readonly #total: number;
  readonly #perSource: number;
  readonly #shares = new Map<string, Share>();
  #inUse = 0;

  constructor({ total, perSource = Number.POSITIVE_INFINITY }: FairShareOptions) {
    this.#total = total;
    this.#perSource = perSource;
  }

  /** The amount that all sources have together. */
  get inUse(): number {
    return this.#inUse;
  }

  /**
   * Takes `amount` for `source`. Undefined if that exceeds the limit of the source, or if no eviction makes room for it.
   * @param onEvicted Called when the part is evicted. It must release the resource behind the part, and must not throw.
   * @param isIdle Whether the part is idle, so that its eviction interrupts no work. Default: always.
   */
  acquire(source: string, amount: number, onEvicted: () => void, isIdle = () => true): Release | undefined {
    if (this.#amountOf(source) + amount > this.#perSource) return undefined;
    const evicted = this.#evictionsFor(source, amount);
    if (!evicted) return undefined;
    for (const part of evicted) {
      this.#release(part);
      part.onEvicted();
    }
    return this.#add({ source, amount, onEvicted, isIdle });
  }

  /** The parts whose release makes room for `amount` of `source`; undefined if it may not take that much. */
  #evictionsFor(source: string, amount: number): ReadonlySet<Part> | undefined {
    const evicted = new Set<Part>();
    let room = this.#total - this.#inUse;
    while (room < amount) {
      const part = this.#nextEviction(source, amount, evicted);
      if (!part) return undefined;
      evicted.add(part);
      room += part.amount;
    }
    return evicted;
  }

  #nextEviction(source: string, amount: number, evicted: ReadonlySet<Part>): Part | undefined {
    const largest = this.#largestShare(evicted);
    if (largest && mayEvict(this.#amountOf(source), amount, largest.amount)) {
      const remaining = [...largest.parts].filter((part) => !evicted.has(part));
      return remaining.find((part) => part.isIdle()) ?? remaining[0];
    }
    return [...(this.#shares.get(source)?.parts ?? [])].find((part) => part.amount > amount && !evicted.has(part));
  }

  #amountOf(source: string): number {
    return this.#shares.get(source)?.amount ?? 0;
  }

  #add(part: Part): Release {
    const share = this.#shares.get(part.source) ?? { amount: 0, parts: new Set() };
    this.#shares.set(part.source, share);
    share.parts.add(part);
    share.amount += part.amount;
    this.#inUse += part.amount;
    return () => this.#release(part);
  }

  #release(part: Part): void {
    const share = this.#shares.get(part.source);
    if (!share?.parts.delete(part)) return;
    share.amount -= part.amount;
    this.#inUse -= part.amount;
    if (share.parts.size === 0) this.#shares.delete(part.source);
  }

  /** The share that is the largest without the parts in `evicted`. */
  #largestShare(evicted: ReadonlySet<Part>): Share | undefined {
    let largest: Share | undefined;
    for (const [source, { amount, parts }] of this.#shares) {
      const remaining = [...evicted].reduce((sum, part) => (part.source === source ? sum - part.amount : sum), amount);
      if (!largest || remaining > largest.amount) largest = { amount: remaining, parts };
    }
    return largest;
  }
}

/**
 * Whether a source that has `current` may evict parts of the source that has `most`, to take `amount`. It must still have less afterwards,
 * so that equal sources do not evict each other's parts; a source without parts may also become equal.
 */
function mayEvict(current: number, amount: number, most: number): boolean {
  return current === 0 ? amount <= most : current + amount < most;
}

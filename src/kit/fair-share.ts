/** A second call has no effect. */
type Release = () => void;

/** In the unit of the budget, such as connections or bytes. */
interface FairShareOptions {
  /** All sources together. */
  readonly total: number;
  /** One source. Default: the whole budget. */
  readonly perSource?: number;
}

/** Of one call of `acquire`. */
interface Part {
  readonly source: string;
  readonly amount: number;
  readonly onEvicted: () => void;
  readonly isIdle: () => boolean;
}

/** Oldest first. */
interface Share {
  amount: number;
  readonly parts: Set<Part>;
}

/**
 * A budget of connections or bytes that sources, such as client addresses, share. Without room, a
 * source that has little evicts parts of the source that has the most: idle and old ones first. So
 * sources with many parts cannot exclude a source with few, however long they keep theirs. A source
 * may also replace a larger part of its own by a smaller one.
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

  get inUse(): number {
    return this.#inUse;
  }

  /**
   * Undefined beyond the limit of the source, or if no eviction makes room. `onEvicted` must
   * release what is behind the part, and not throw. `isIdle`: the eviction interrupts no work.
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

  /** What must go to make room for `amount` of `source`. */
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

  /** The largest without the parts in `evicted`. */
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
 * It must have less than the other afterwards, so that equals do not evict each other; a source
 * without parts may become equal.
 */
function mayEvict(current: number, amount: number, most: number): boolean {
  return current === 0 ? amount <= most : current + amount < most;
}

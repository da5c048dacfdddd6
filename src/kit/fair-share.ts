/** Returns a part to the budget. A second call has no effect. */
type Release = () => void;

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

/** The parts that one source has, oldest first. */
interface Share {
  held: number;
  readonly parts: Set<Part>;
}

/**
 * A budget, of connections or bytes, that sources share. While there is room, a source takes parts up to its own limit. If there is
 * none, a source that has little takes room from the source that has the most. That source loses idle parts first, oldest first.
 * So greedy sources cannot lock a modest one out, however many parts they have and for however long. It evicts no part if that does
 * not make enough room. A source loses one of its own parts only to a smaller part.
 */
export class FairShare {
  readonly #total: number;
  readonly #perSource: number;
  readonly #shares = new Map<string, Share>();
  #held = 0;

  constructor({ total, perSource = Number.POSITIVE_INFINITY }: FairShareOptions) {
    this.#total = total;
    this.#perSource = perSource;
  }

  /** The amount that all sources have. */
  get held(): number {
    return this.#held;
  }

  /**
   * Takes `amount` for `source`; undefined if the source may not have it.
   * @param onEvicted Called when another source takes the part. It must release the resource behind the part, and must not throw.
   * @param isIdle Whether an eviction would interrupt nothing. Default: always.
   */
  acquire(source: string, amount: number, onEvicted: () => void, isIdle = () => true): Release | undefined {
    if (this.#heldBy(source) + amount > this.#perSource) return undefined;
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
    let room = this.#total - this.#held;
    while (room < amount) {
      const part = this.#nextEviction(source, amount, evicted);
      if (!part) return undefined;
      evicted.add(part);
      room += part.amount;
    }
    return evicted;
  }

  #nextEviction(source: string, amount: number, evicted: ReadonlySet<Part>): Part | undefined {
    const largest = this.#largestHolder(evicted);
    if (largest && mayEvict(this.#heldBy(source), amount, largest.held)) {
      const remaining = [...largest.parts].filter((part) => !evicted.has(part));
      return remaining.find((part) => part.isIdle()) ?? remaining[0];
    }
    return [...(this.#shares.get(source)?.parts ?? [])].find((part) => part.amount > amount && !evicted.has(part));
  }

  #heldBy(source: string): number {
    return this.#shares.get(source)?.held ?? 0;
  }

  #add(part: Part): Release {
    const share = this.#shares.get(part.source) ?? { held: 0, parts: new Set() };
    this.#shares.set(part.source, share);
    share.parts.add(part);
    share.held += part.amount;
    this.#held += part.amount;
    return () => this.#release(part);
  }

  #release(part: Part): void {
    const share = this.#shares.get(part.source);
    if (!share?.parts.delete(part)) return;
    share.held -= part.amount;
    this.#held -= part.amount;
    if (share.parts.size === 0) this.#shares.delete(part.source);
  }

  /** The share that is the largest without the parts in `evicted`. */
  #largestHolder(evicted: ReadonlySet<Part>): Share | undefined {
    let largest: Share | undefined;
    for (const [source, { held, parts }] of this.#shares) {
      const remaining = [...evicted].reduce((sum, part) => (part.source === source ? sum - part.amount : sum), held);
      if (!largest || remaining > largest.held) largest = { held: remaining, parts };
    }
    return largest;
  }
}

/** Equal sources do not displace each other; only a source without parts may become equal. */
function mayEvict(held: number, amount: number, most: number): boolean {
  return held === 0 ? amount <= most : held + amount < most;
}

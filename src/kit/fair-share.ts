/** Part of a budget. Releasing it twice has no effect. */
type Release = () => void;

interface FairShareOptions {
  /** The most that all sources may hold together. */
  readonly total: number;
  /** The most that one source may hold. Default: the whole budget. */
  readonly perSource?: number;
}

interface Part {
  readonly amount: number;
  readonly onEvicted: () => void;
}

/** The parts that one source holds, oldest first. */
interface Share {
  held: number;
  readonly parts: Set<Part>;
}

/**
 * A budget, of connections or bytes, that sources share. While there is room, a source takes parts up to its own limit. If there is
 * none, a source that holds little takes room from the source that holds the most, which loses its oldest parts. So greedy sources
 * cannot keep a modest one out, however many parts they hold and for however long. A source loses one of its own parts only to a smaller part.
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

  /** The amount that all sources hold. */
  get held(): number {
    return this.#held;
  }

  /**
   * Takes `amount` for `source`; undefined if the source may not have it.
   * @param onEvicted Called when another source takes the part. It must release the resource behind the part, and must not throw.
   */
  acquire(source: string, amount: number, onEvicted: () => void): Release | undefined {
    if (this.#heldBy(source) + amount > this.#perSource) return undefined;
    while (this.#held + amount > this.#total) {
      const victim = this.#victim(source, amount);
      if (!victim) return undefined;
      this.#release(victim.source, victim.part);
      victim.part.onEvicted();
    }
    return this.#add(source, { amount, onEvicted });
  }

  /** The part whose release makes room for `amount` of `source`. */
  #victim(source: string, amount: number): { readonly source: string; readonly part: Part } | undefined {
    const largest = this.#largestHolder();
    if (largest && mayEvict(this.#heldBy(source), amount, largest.share.held)) {
      const [part] = largest.share.parts;
      return part && { source: largest.source, part };
    }
    const part = [...(this.#shares.get(source)?.parts ?? [])].find((own) => own.amount > amount);
    return part && { source, part };
  }

  #heldBy(source: string): number {
    return this.#shares.get(source)?.held ?? 0;
  }

  #add(source: string, part: Part): Release {
    const share = this.#shares.get(source) ?? { held: 0, parts: new Set() };
    this.#shares.set(source, share);
    share.parts.add(part);
    share.held += part.amount;
    this.#held += part.amount;
    return () => this.#release(source, part);
  }

  #release(source: string, part: Part): void {
    const share = this.#shares.get(source);
    if (!share?.parts.delete(part)) return;
    share.held -= part.amount;
    this.#held -= part.amount;
    if (share.parts.size === 0) this.#shares.delete(source);
  }

  #largestHolder(): { readonly source: string; readonly share: Share } | undefined {
    let most: { readonly source: string; readonly share: Share } | undefined;
    for (const [source, share] of this.#shares) {
      if (!most || share.held > most.share.held) most = { source, share };
    }
    return most;
  }
}

/** Equal sources do not displace each other; only a source that holds nothing may become equal. */
function mayEvict(held: number, amount: number, most: number): boolean {
  return held === 0 ? amount <= most : held + amount < most;
}

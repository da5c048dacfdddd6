/** Part of a budget. Releasing it twice has no effect. */
type GiveBack = () => void;

interface FairShareOptions {
  /** The most that all sources may hold together. */
  readonly total: number;
  /** The most that one source may hold. Default: the whole budget. */
  readonly perSource?: number;
}

interface Piece {
  readonly amount: number;
  readonly drop: () => void;
}

/** The parts that one source holds, oldest first. */
interface Share {
  held: number;
  readonly pieces: Set<Piece>;
}

/**
 * A budget, of connections or bytes, that sources share. While there is room, a source takes parts up to its own limit. If there is
 * none, a source that holds little takes room from the source that holds the most, which loses its oldest parts. So greedy sources
 * cannot keep a modest one out, however many parts they hold and for however long. A source loses its own parts only to a smaller one.
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
   * @param drop Called when another source takes the part. It must release the resource behind the part, and must not throw.
   */
  take(source: string, amount: number, drop: () => void): GiveBack | undefined {
    if (this.#heldBy(source) + amount > this.#perSource) return undefined;
    while (this.#held + amount > this.#total) {
      const loser = this.#loser(source, amount);
      if (!loser) return undefined;
      this.#giveBack(loser.source, loser.piece);
      loser.piece.drop();
    }
    return this.#hold(source, { amount, drop });
  }

  /** The part whose release makes room for `amount` of `source`. */
  #loser(source: string, amount: number): { readonly source: string; readonly piece: Piece } | undefined {
    const greediest = this.#greediest();
    if (greediest && mayDisplace(this.#heldBy(source), amount, greediest.share.held)) {
      const [piece] = greediest.share.pieces;
      return piece && { source: greediest.source, piece };
    }
    const piece = [...(this.#shares.get(source)?.pieces ?? [])].find((own) => own.amount > amount);
    return piece && { source, piece };
  }

  #heldBy(source: string): number {
    return this.#shares.get(source)?.held ?? 0;
  }

  #hold(source: string, piece: Piece): GiveBack {
    const share = this.#shares.get(source) ?? { held: 0, pieces: new Set() };
    this.#shares.set(source, share);
    share.pieces.add(piece);
    share.held += piece.amount;
    this.#held += piece.amount;
    return () => this.#giveBack(source, piece);
  }

  #giveBack(source: string, piece: Piece): void {
    const share = this.#shares.get(source);
    if (!share?.pieces.delete(piece)) return;
    share.held -= piece.amount;
    this.#held -= piece.amount;
    if (share.pieces.size === 0) this.#shares.delete(source);
  }

  #greediest(): { readonly source: string; readonly share: Share } | undefined {
    let most: { readonly source: string; readonly share: Share } | undefined;
    for (const [source, share] of this.#shares) {
      if (!most || share.held > most.share.held) most = { source, share };
    }
    return most;
  }
}

/** Equal sources do not displace each other; only a source that holds nothing may become equal. */
function mayDisplace(held: number, amount: number, most: number): boolean {
  return held === 0 ? amount <= most : held + amount < most;
}

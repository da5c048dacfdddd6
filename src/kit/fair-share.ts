/** A piece of a budget. Giving it back twice does nothing. */
type GiveBack = () => void;

interface FairShareOptions {
  /** What all sources may hold together. */
  readonly total: number;
  /** What one source may hold. Default: as much as there is. */
  readonly perSource?: number;
}

interface Piece {
  readonly amount: number;
  readonly drop: () => void;
}

/** What one source holds, oldest piece first. */
interface Share {
  held: number;
  readonly pieces: Set<Piece>;
}

/**
 * A budget that sources hold pieces of: connections, bytes. While there is room, a source takes what it likes, up to its own limit.
 * When there is none, a source that holds little takes room from the one that holds most, which loses its oldest pieces. So many
 * greedy sources cannot keep a modest one out, however many pieces they hold and for however long. Of its own pieces, a source loses
 * only larger ones for a smaller one.
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

  /** What all sources hold now. */
  get held(): number {
    return this.#held;
  }

  /**
   * Takes `amount` for `source`; undefined when it may not have it.
   * @param drop Called when the piece goes to another source; it must end what the piece stands for, and not throw.
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

  /** The piece that makes room for `amount` of `source`. */
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

/** Equals do not displace each other in turn; only a source that holds nothing yet may draw level. */
function mayDisplace(held: number, amount: number, most: number): boolean {
  return held === 0 ? amount <= most : held + amount < most;
}

import type { Duplex } from 'node:stream';

/** One direction of a stream. Reading pauses while the receiver is behind, and for `waitFor`. */
export class Flow {
  readonly #from: Duplex;
  readonly #to: Duplex;
  /** The receiver while it must drain, and unresolved promises of `waitFor`. */
  readonly #pauseReasons = new Set<unknown>();

  constructor(from: Duplex, to: Duplex) {
    this.#from = from;
    this.#to = to;
  }

  /** Drops the chunk if the receiver is closed. */
  pass(chunk: Buffer): void {
    const to = this.#to;
    if (chunk.length === 0 || to.destroyed || to.writableEnded || to.write(chunk) || this.#pauseReasons.has(to)) return;
    this.#pause(to);
    to.once('drain', () => this.#resume(to));
  }

  /** Pauses reading until `ready` resolves. `ready` must not reject. */
  waitFor(ready: Promise<void>): void {
    if (this.#pauseReasons.has(ready)) return;
    this.#pause(ready);
    void ready.then(() => this.#resume(ready));
  }

  /** Even if the receiver is behind or a promise of `waitFor` has not resolved. */
  resumeNow(): void {
    this.#pauseReasons.clear();
    this.#from.resume();
  }

  #pause(reason: unknown): void {
    this.#pauseReasons.add(reason);
    this.#from.pause();
  }

  #resume(reason: unknown): void {
    if (this.#pauseReasons.delete(reason) && this.#pauseReasons.size === 0) this.#from.resume();
  }
}

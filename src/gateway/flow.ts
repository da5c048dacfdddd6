import type { Duplex } from 'node:stream';

/** One direction of a stream. It pauses reading while its receiver is behind, and until the promises of `waitFor` resolve. */
export class Flow {
  readonly #from: Duplex;
  readonly #to: Duplex;
  /** The receiver if it must drain, and the promises of `waitFor` that have not resolved. Reading is paused unless this is empty. */
  readonly #pauseReasons = new Set<unknown>();

  constructor(from: Duplex, to: Duplex) {
    this.#from = from;
    this.#to = to;
  }

  /**
   * Writes the chunk to the receiver, or drops it if the receiver is closed. If the receiver is behind, pauses reading until the receiver
   * has drained.
   */
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

  /** Resumes reading at once, even if the receiver is behind or a promise of `waitFor` has not resolved. */
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

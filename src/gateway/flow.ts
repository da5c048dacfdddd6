import type { Duplex } from 'node:stream';

/** One direction of a stream. It reads no faster than its receiver, and those who get copies, can take the bytes. */
export class Flow {
  readonly #from: Duplex;
  readonly #to: Duplex;
  /** What reading waits for; empty while the direction reads. */
  readonly #pauseReasons = new Set<unknown>();

  constructor(from: Duplex, to: Duplex) {
    this.#from = from;
    this.#to = to;
  }

  /** Writes the chunk to the receiver. If the receiver is behind, stops reading until it has caught up. */
  pass(chunk: Buffer): void {
    const to = this.#to;
    if (chunk.length === 0 || to.destroyed || to.writableEnded || to.write(chunk) || this.#pauseReasons.has(to)) return;
    this.#pause(to);
    to.once('drain', () => this.#resume(to));
  }

  /** Stops reading until `ready` resolves; it must not reject. */
  waitFor(ready: Promise<void>): void {
    if (this.#pauseReasons.has(ready)) return;
    this.#pause(ready);
    void ready.then(() => this.#resume(ready));
  }

  /** Reads again at once, whatever reading waits for. */
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

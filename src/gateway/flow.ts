import type { Duplex } from 'node:stream';

/** One direction of a stream. It reads no faster than the receiver, and what sees copies beside, can take. */
export class Flow {
  readonly #from: Duplex;
  readonly #to: Duplex;
  /** Why nothing is read now. */
  readonly #holds = new Set<unknown>();

  constructor(from: Duplex, to: Duplex) {
    this.#from = from;
    this.#to = to;
  }

  /** Writes the chunk to the receiver. While the receiver is behind, reads no more. */
  pass(chunk: Buffer): void {
    const to = this.#to;
    if (chunk.length === 0 || to.destroyed || to.writableEnded || to.write(chunk) || this.#holds.has(to)) return;
    this.#hold(to);
    to.once('drain', () => this.#release(to));
  }

  /** Reads no more until `ready` resolves; it must not reject. */
  waitFor(ready: Promise<void>): void {
    if (this.#holds.has(ready)) return;
    this.#hold(ready);
    void ready.then(() => this.#release(ready));
  }

  /** Reads on, whatever it waited for. */
  flush(): void {
    this.#holds.clear();
    this.#from.resume();
  }

  #hold(reason: unknown): void {
    this.#holds.add(reason);
    this.#from.pause();
  }

  #release(reason: unknown): void {
    if (this.#holds.delete(reason) && this.#holds.size === 0) this.#from.resume();
  }
}

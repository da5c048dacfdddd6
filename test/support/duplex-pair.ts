import { Duplex } from 'node:stream';

/** One end of a connection within the process: what is written to one end can be read from the other. */
class End extends Duplex {
  other: End | undefined;
  #resume: (() => void) | undefined;

  override _read(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (!this.other || this.other.destroyed || this.other.push(chunk)) done();
    else this.other.#resume = done;
  }

  override _final(done: () => void): void {
    this.other?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    done(error);
    const { other } = this;
    if (other && !other.destroyed) other.push(null);
  }
}

/** Both ends of a connection. */
export function duplexPair(): [Duplex, Duplex] {
  const [a, b] = [new End(), new End()];
  a.other = b;
  b.other = a;
  return [a, b];
}

/** Lets connections pass on what was written. */
export const settlePairs = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};

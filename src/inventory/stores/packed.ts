import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Unpacked values that are kept, for whoever looks at one several times in a row. */
const mostUnpacked = 64;
const unpacked = new Map<Packed<unknown>, unknown>();

/** A JSON value that is rarely looked at, in a tenth of the memory. Each look may give another copy: do not change it. */
export class Packed<T> {
  readonly #bytes: string;

  constructor(value: T) {
    // One byte a character, on the heap: a Buffer of its own would cost more than what is in it.
    this.#bytes = deflateRawSync(JSON.stringify(value), { level: 1 }).toString('latin1');
  }

  get value(): T {
    const known = unpacked.get(this);
    // Only `this` is put in for `this`.
    if (known !== undefined) return known as T;
    const value = JSON.parse(inflateRawSync(Buffer.from(this.#bytes, 'latin1')).toString('utf8')) as T;
    unpacked.set(this, value);
    for (const oldest of unpacked.keys()) {
      if (unpacked.size <= mostUnpacked) break;
      unpacked.delete(oldest);
    }
    return value;
  }
}

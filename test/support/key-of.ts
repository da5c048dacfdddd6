/** A key that depends only on the seed. */
export const keyOf = (seed: string): Uint8Array => Buffer.alloc(32, seed);

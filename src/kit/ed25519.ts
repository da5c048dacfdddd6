import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify } from 'node:crypto';

// RFC 8410: the DER prefix of a raw Ed25519 key.
const privatePrefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** For one purpose, derived from a secret by HKDF-SHA256: the same secret gives the same pair. */
export class DerivedKeyPair {
  /** 32 bytes. */
  readonly publicKey: Buffer;
  readonly #private: KeyObject;

  /** `purpose` is the `info` of HKDF. `secret` needs at least 32 random bytes. */
  constructor(secret: Uint8Array, purpose: string) {
    const seed = Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));
    this.#private = createPrivateKey({ key: Buffer.concat([privatePrefix, seed]), format: 'der', type: 'pkcs8' });
    const spki = createPublicKey(this.#private).export({ format: 'der', type: 'spki' });
    this.publicKey = spki.subarray(publicPrefix.length);
  }

  /** 64 bytes, over UTF-8. */
  sign(text: string): Buffer {
    return sign(null, Buffer.from(text, 'utf8'), this.#private);
  }
}

/** `publicKey`: 32 bytes; false if they are not a key. */
export function isSignedBy(publicKey: Uint8Array, text: string, signature: Uint8Array): boolean {
  try {
    const key = createPublicKey({ key: Buffer.concat([publicPrefix, publicKey]), format: 'der', type: 'spki' });
    return verify(null, Buffer.from(text, 'utf8'), key, signature);
  } catch {
    return false;
  }
}

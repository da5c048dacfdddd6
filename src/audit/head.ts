import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify } from 'node:crypto';
import { canonicalJson } from '../kit/canonical-json.ts';
import { isRecord, own } from '../kit/json-value.ts';
import type { ChainHead } from './chain.ts';

/** The ConfigMap that holds the heads: one entry a chain, under the chain's name. */
export const headsConfigMapName = 'drawbridge-audit-heads';

/** What is signed: this replica had written this chain up to here at that time. */
interface Head extends ChainHead {
  readonly replica: string;
  /** RFC 3339 with microseconds, of the signature. */
  readonly time: string;
}

export interface SignedHead extends Head {
  /** Ed25519 public key, 32 bytes in base64. */
  readonly key: string;
  /** Ed25519 over `drawbridge.dev/audit-head/v1`, a newline and the canonical JSON of the other fields; 64 bytes in base64. */
  readonly signature: string;
}

// RFC 8410: all that DER puts around a raw Ed25519 key.
const privatePrefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex');

export class HeadSigner {
  /** What a verifier needs, 32 bytes in base64. */
  readonly publicKey: string;
  readonly #private: KeyObject;

  /** The key pair is derived from `secret`, so every process that holds the secret signs with the same one. */
  constructor(secret: Uint8Array) {
    const seed = Buffer.from(hkdfSync('sha256', secret, '', 'drawbridge.dev/audit-head/v1', 32));
    this.#private = createPrivateKey({ key: Buffer.concat([privatePrefix, seed]), format: 'der', type: 'pkcs8' });
    const spki = createPublicKey(this.#private).export({ format: 'der', type: 'spki' });
    this.publicKey = spki.subarray(publicPrefix.length).toString('base64');
  }

  sign({ chain, seq, hash, replica, time }: Head): SignedHead {
    const unsigned = { chain, seq, hash, replica, time, key: this.publicKey };
    return { ...unsigned, signature: sign(null, textOf(unsigned), this.#private).toString('base64') };
  }
}

/** Whether the key that the head names has signed it; whose key that is, the caller has to know. */
export function isSigned({ signature, ...unsigned }: SignedHead): boolean {
  try {
    const der = Buffer.concat([publicPrefix, Buffer.from(unsigned.key, 'base64')]);
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
    return verify(null, textOf(unsigned), key, Buffer.from(signature, 'base64'));
  } catch {
    // Not a point of the curve.
    return false;
  }
}

/** The head in an entry of the ConfigMap, its signature not looked at; undefined when it is none. */
export function parseHead(text: unknown): SignedHead | undefined {
  if (typeof text !== 'string' || text.length > MAX_LENGTH) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const [seq, replica, time] = [own(value, 'seq'), own(value, 'replica'), own(value, 'time')];
  const [chain, hash] = [matching(value, 'chain', /^[0-9a-f]{24}$/), matching(value, 'hash', /^[0-9a-f]{64}$/)];
  const key = matching(value, 'key', /^[A-Za-z0-9+/]{43}=$/);
  const signature = matching(value, 'signature', /^[A-Za-z0-9+/]{86}==$/);
  if (!chain || !hash || !key || !signature || typeof replica !== 'string' || typeof time !== 'string')
    return undefined;
  if (!Number.isSafeInteger(seq) || typeof seq !== 'number' || seq < 1) return undefined;
  return { chain, seq, hash, replica, time, key, signature };
}

/** The heads in the ConfigMap, and the names of entries that are none. */
export function readHeads(configMap: unknown): { readonly heads: SignedHead[]; readonly unreadable: string[] } {
  const heads: SignedHead[] = [];
  const unreadable: string[] = [];
  const data = own(configMap, 'data');
  for (const name of isRecord(data) ? Object.keys(data) : []) {
    const head = parseHead(own(data, name));
    if (head?.chain === name) heads.push(head);
    else unreadable.push(name);
  }
  return { heads, unreadable };
}

const MAX_LENGTH = 4096;

function matching(value: unknown, field: string, pattern: RegExp): string | undefined {
  const text = own(value, field);
  return typeof text === 'string' && pattern.test(text) ? text : undefined;
}

const textOf = (unsigned: Head & { readonly key: string }): Buffer =>
  Buffer.from(`drawbridge.dev/audit-head/v1\n${canonicalJson(unsigned)}`, 'utf8');

import { canonicalJson } from '../kit/canonical-json.ts';
import { DerivedKeyPair, isSignedBy } from '../kit/ed25519.ts';
import { isRecord, own } from '../kit/json-value.ts';
import type { ChainHead } from './chain.ts';

/** The purpose of the key pairs that sign heads; the signed text begins with it. */
export const headPurpose = 'drawbridge.dev/audit-head/v1';

/** Names of objects in the namespace of the process. */
interface HeadNames {
  /** A ConfigMap with one entry for each chain, under its name. */
  readonly heads: string;
  /** A Secret, and a ConfigMap of the public keys. */
  readonly keys: string;
}

/** By feature, so that processes do not read each other's keys. */
export const headNames = {
  access: { heads: 'drawbridge-audit-heads', keys: 'drawbridge-audit-keys' },
  gateway: { heads: 'drawbridge-gateway-audit-heads', keys: 'drawbridge-gateway-audit-keys' },
  inventory: { heads: 'drawbridge-inventory-audit-heads', keys: 'drawbridge-inventory-audit-keys' },
} as const satisfies Record<string, HeadNames>;

/** At `time`, this was the last line of the chain of `replica`. */
interface Head extends ChainHead {
  readonly replica: string;
  /** RFC 3339 with microseconds. */
  readonly time: string;
}

/** With the key that verifies it. */
export interface SignedHead extends Head {
  /** Ed25519 public key, 32 bytes in base64. */
  readonly key: string;
  /** Over `drawbridge.dev/audit-head/v1`, a newline, and the canonical JSON of the other fields. */
  readonly signature: string;
}

export class HeadSigner {
  /** 32 bytes in base64. */
  readonly publicKey: string;
  readonly #pair: DerivedKeyPair;

  /** All processes with the same `secret` sign with the same key. */
  constructor(secret: Uint8Array) {
    this.#pair = new DerivedKeyPair(secret, headPurpose);
    this.publicKey = this.#pair.publicKey.toString('base64');
  }

  sign({ chain, seq, hash, replica, time }: Head): SignedHead {
    const unsigned = { chain, seq, hash, replica, time, key: this.publicKey };
    return { ...unsigned, signature: this.#pair.sign(signedText(unsigned)).toString('base64') };
  }
}

/** Verifies under the key that the head names; the caller decides whether to trust it. */
export function isSigned({ signature, ...unsigned }: SignedHead): boolean {
  return isSignedBy(Buffer.from(unsigned.key, 'base64'), signedText(unsigned), Buffer.from(signature, 'base64'));
}

/** Parses an entry of the ConfigMap; does not verify the signature. */
export function parseHead(text: unknown): SignedHead | undefined {
  if (typeof text !== 'string' || text.length > MAX_LENGTH) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const seq = own(value, 'seq');
  const replica = own(value, 'replica');
  const time = own(value, 'time');
  const chain = matching(value, 'chain', /^[0-9a-f]{24}$/);
  const hash = matching(value, 'hash', /^[0-9a-f]{64}$/);
  const key = matching(value, 'key', /^[A-Za-z0-9+/]{43}=$/);
  const signature = matching(value, 'signature', /^[A-Za-z0-9+/]{86}==$/);
  if (!chain || !hash || !key || !signature || typeof replica !== 'string' || typeof time !== 'string')
    return undefined;
  if (!Number.isSafeInteger(seq) || typeof seq !== 'number' || seq < 1) return undefined;
  return { chain, seq, hash, replica, time, key, signature };
}

/** `unreadable`: names of invalid entries. */
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

/** Of an entry of the ConfigMap, characters. */
const MAX_LENGTH = 4096;

function matching(value: unknown, field: string, pattern: RegExp): string | undefined {
  const text = own(value, field);
  return typeof text === 'string' && pattern.test(text) ? text : undefined;
}

const signedText = (unsigned: Head & { readonly key: string }): string => `${headPurpose}\n${canonicalJson(unsigned)}`;

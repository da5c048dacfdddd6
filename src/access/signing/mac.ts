import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../../kit/canonical-json.ts';

/** What a MAC vouches for. One made for one purpose never verifies for another, whatever the values are. */
export type Purpose = 'stamp' | 'author' | 'grant' | 'child';

/** Secret keys, 32 bytes or more each. What is made is made under `current`; what was made under `previous` still verifies. */
export interface SigningKeys {
  readonly current: Uint8Array;
  readonly previous?: Uint8Array;
}

/** HMAC-SHA256 over the purpose and the canonical JSON of `value`, in base64url: 43 characters. */
export function macOf(key: Uint8Array, purpose: Purpose, value: unknown): string {
  const text = `drawbridge.dev/${purpose}/v1\n${canonicalJson(value)}`;
  return createHmac('sha256', key).update(text, 'utf8').digest('base64url');
}

/** Whether `mac`, which may be anything, was made for `value` under one of the keys. Compares in constant time. */
export function isMacOf(keys: SigningKeys, purpose: Purpose, value: unknown, mac: unknown): boolean {
  if (typeof mac !== 'string') return false;
  const found = Buffer.from(mac, 'utf8');
  const candidates = keys.previous ? [keys.current, keys.previous] : [keys.current];
  return candidates.some((key) => {
    // As text: several base64 texts may stand for the same bytes, and only one of them is ours.
    const expected = Buffer.from(macOf(key, purpose, value), 'utf8');
    return found.length === expected.length && timingSafeEqual(found, expected);
  });
}

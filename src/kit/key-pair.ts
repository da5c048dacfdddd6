import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { formatTime, parseTime } from './clock.ts';

/** A certificate chain and its key, both PEM, that belong together. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Begin of the certificate's validity, epoch ms. */
  readonly startsAtMs: number;
  /** End of the certificate's validity, epoch ms. */
  readonly expiresAtMs: number;
}

/** @throws Error that says in a clause why the two do not make a serving certificate; one that has expired still does. */
export function readKeyPair(cert: Buffer, key: Buffer): KeyPair {
  const parsed = new X509Certificate(cert);
  if (!parsed.checkPrivateKey(createPrivateKey(key))) throw new Error('the key is not the one of the certificate');
  const [startsAtMs, expiresAtMs] = [parseValidity(parsed.validFrom), parseValidity(parsed.validTo)];
  // Also reads the rest of the chain, which the lines above do not look at.
  createSecureContext({ cert, key });
  return { cert, key, startsAtMs, expiresAtMs };
}

/** Why the pair cannot serve any more, or undefined. */
export function expiryOf({ expiresAtMs }: KeyPair, nowMs: number): string | undefined {
  return expiresAtMs > nowMs ? undefined : `the serving certificate expired at ${formatTime(expiresAtMs)}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** OpenSSL's form: `Nov  5 09:30:00 2027 GMT`. */
function parseValidity(text: string): number {
  const [, month = '', day = '', time = '', year = ''] = /^(\w{3}) +(\d+) ([\d:]+) (\d{4}) GMT$/.exec(text) ?? [];
  const twoDigits = (value: number | string): string => String(value).padStart(2, '0');
  const instant = parseTime(`${year}-${twoDigits(MONTHS.indexOf(month) + 1)}-${twoDigits(day)}T${time}Z`);
  if (instant === undefined) throw new Error(`an end of its validity cannot be read: ${text}`);
  return instant;
}

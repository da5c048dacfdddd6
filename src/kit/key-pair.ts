import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { formatTime, parseTime } from './clock.ts';

/** PEM. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Of the first certificate in the chain. */
  readonly startsAtMs: number;
  readonly expiresAtMs: number;
}

/**
 * Checks that they belong together. Accepts an expired certificate.
 * @throws Error with the reason, if a TLS server cannot use them.
 */
export function readKeyPair(cert: Buffer, key: Buffer): KeyPair {
  const parsed = new X509Certificate(cert);
  if (!parsed.checkPrivateKey(createPrivateKey(key))) throw new Error('the key does not match the certificate');
  const startsAtMs = parseValidity(parsed.validFrom);
  const expiresAtMs = parseValidity(parsed.validTo);
  // Also parses the rest of the chain.
  createSecureContext({ cert, key });
  return { cert, key, startsAtMs, expiresAtMs };
}

export function expiryProblem({ expiresAtMs }: KeyPair, nowMs: number): string | undefined {
  return expiresAtMs > nowMs ? undefined : `the serving certificate expired at ${formatTime(expiresAtMs)}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** OpenSSL's form: `Nov  5 09:30:00 2027 GMT`. */
function parseValidity(text: string): number {
  const [, month = '', day = '', time = '', year = ''] = /^(\w{3}) +(\d+) ([\d:]+) (\d{4}) GMT$/.exec(text) ?? [];
  const twoDigits = (value: number | string): string => String(value).padStart(2, '0');
  const instant = parseTime(`${year}-${twoDigits(MONTHS.indexOf(month) + 1)}-${twoDigits(day)}T${time}Z`);
  if (instant === undefined) throw new Error(`cannot parse the time ${text} in the validity of the certificate`);
  return instant;
}

import { randomBytes, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { own } from '../kit/json-value.ts';
import { type KeyPair, readKeyPair } from '../kit/key-pair.ts';
import { createAuthority, issue } from './x509.ts';

/** With the authority (PEM) that signed the pair. The authority's key is not kept. */
interface SignedPair {
  readonly pair: KeyPair;
  readonly authority: string;
}

/** What the Secret stores: the pair that all replicas serve, and the state of a rotation. */
export interface Material extends SignedPair {
  /** Served once every configuration trusts its authority. */
  readonly next?: SignedPair;
  /** A replica may still serve the pair of this authority. */
  readonly previousAuthority?: string;
}

const DAY_MS = 24 * 3600 * 1000;
const LIFETIME_MS = 90 * DAY_MS;
/** Certificates start in the past, for clocks that are behind. */
const BACKDATED_MS = 3600 * 1000;

/** For 90 days from `nowMs`. */
export function newSignedPair(names: readonly string[], nowMs: number): SignedPair {
  const validity = { fromMs: nowMs - BACKDATED_MS, untilMs: nowMs + LIFETIME_MS };
  // The random name keeps verifiers from confusing two authorities.
  const authority = createAuthority(`drawbridge-webhook-ca-${randomBytes(4).toString('hex')}`, validity);
  const { certificate, key } = issue(authority, { commonName: 'drawbridge-webhook', serves: names }, validity);
  return { pair: readKeyPair(Buffer.from(certificate), Buffer.from(key)), authority: authority.certificate };
}

export function serves({ pair }: SignedPair, names: readonly string[]): boolean {
  const certificate = new X509Certificate(pair.cert);
  return names.every((name) => (isIP(name) ? certificate.checkIP(name) : certificate.checkHost(name)) !== undefined);
}

/** `caBundle` (PEM): the authorities of all pairs that a replica may serve, newest first. */
export function trustBundle({ authority, next, previousAuthority = '' }: Material): string {
  return `${next?.authority ?? ''}${authority}${previousAuthority}`;
}

/** Of the Secret's `data`. */
const keys = {
  cert: 'tls.crt',
  key: 'tls.key',
  authority: 'ca.crt',
  nextCert: 'next-tls.crt',
  nextKey: 'next-tls.key',
  nextAuthority: 'next-ca.crt',
  previousAuthority: 'previous-ca.crt',
} as const;

/** Of the Secret's `data`, in base64; null removes a key. */
export function toData({ pair, authority, next, previousAuthority }: Material): Record<string, string | null> {
  const base64 = (text: Buffer | string | undefined): string | null =>
    text === undefined ? null : Buffer.from(text).toString('base64');
  return {
    [keys.cert]: base64(pair.cert),
    [keys.key]: base64(pair.key),
    [keys.authority]: base64(authority),
    [keys.nextCert]: base64(next?.pair.cert),
    [keys.nextKey]: base64(next?.pair.key),
    [keys.nextAuthority]: base64(next?.authority),
    [keys.previousAuthority]: base64(previousAuthority),
  };
}

/** Unusable state of a rotation counts as absent. @throws Error that says what is unusable. */
export function fromData(data: unknown): Material {
  const bytes = (key: string): Buffer => {
    const text = own(data, key);
    return Buffer.from(typeof text === 'string' ? text : '', 'base64');
  };
  const served = readSignedPair(bytes(keys.cert), bytes(keys.key), bytes(keys.authority));
  const next = unlessUnusable(() =>
    readSignedPair(bytes(keys.nextCert), bytes(keys.nextKey), bytes(keys.nextAuthority)),
  );
  const previousAuthority = unlessUnusable(() => readAuthority(bytes(keys.previousAuthority)));
  return { ...served, ...(next ? { next } : {}), ...(previousAuthority ? { previousAuthority } : {}) };
}

function readSignedPair(cert: Buffer, key: Buffer, pem: Buffer): SignedPair {
  const pair = readKeyPair(cert, key);
  const authority = readAuthority(pem);
  const leaf = new X509Certificate(cert);
  const signer = new X509Certificate(authority);
  if (!leaf.checkIssued(signer) || !leaf.verify(signer.publicKey))
    throw new Error('the authority in ca.crt did not sign the certificate in tls.crt');
  return { pair, authority };
}

/** The first authority of a bundle, if it is readable. */
export const authorityIn = (bundle: string): string | undefined => unlessUnusable(() => readAuthority(bundle));

/** The first certificate of `pem` and nothing else, encoded again. */
const readAuthority = (pem: Buffer | string): string => new X509Certificate(pem).toString();

function unlessUnusable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

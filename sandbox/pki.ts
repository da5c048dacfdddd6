import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import * as x509 from '../src/certificates/x509.ts';

export type { Authority, Identity } from '../src/certificates/x509.ts';

export interface Subject extends x509.Subject {
  /** Lifetime in days from now; negative makes a certificate that has expired. Default 30. */
  readonly days?: number;
}

const dayMs = 86_400_000;

/** Creates a self-signed certificate authority (EC P-256). */
export function createAuthority(commonName: string): x509.Authority {
  return x509.createAuthority(commonName, lasting());
}

/** Another certificate of the authority, with the same name and key, as after a renewal. */
export function renewAuthority({ commonName, key }: x509.Authority): x509.Authority {
  const keys = { publicKey: createPublicKey(key), privateKey: createPrivateKey(key) };
  return x509.createAuthority(commonName, lasting(), keys);
}

/** Creates a key pair and its certificate for `subject`: a server certificate if it serves names, else a client certificate. */
export function issue(authority: x509.Authority, subject: Subject): x509.Identity {
  return x509.issue(authority, subject, lasting(subject.days));
}

/** A key pair in PEM that signs ServiceAccount tokens. */
export function createSigningKey(): { readonly key: string; readonly publicKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

function lasting(days = 30): x509.Validity {
  const now = Date.now();
  const untilMs = now + days * dayMs;
  return { fromMs: Math.min(now, untilMs) - dayMs, untilMs };
}

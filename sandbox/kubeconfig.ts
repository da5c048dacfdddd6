import { stringify } from 'yaml';
import type { Identity } from './pki.ts';

export interface KubeconfigInputs {
  readonly server: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly authority: string;
  readonly user: string;
  readonly identity: Identity;
}

/** A kubeconfig with all data inline, so that it needs no other file. */
export function kubeconfig({ server, authority, user, identity }: KubeconfigInputs): string {
  const cluster = { server, 'certificate-authority-data': base64(authority) };
  const credentials = {
    'client-certificate-data': base64(identity.certificate),
    'client-key-data': base64(identity.key),
  };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'sandbox', cluster }],
    users: [{ name: user, user: credentials }],
    contexts: [{ name: 'sandbox', context: { cluster: 'sandbox', user } }],
    'current-context': 'sandbox',
  });
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}

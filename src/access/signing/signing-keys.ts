import { KeySecret, type KeySecretOptions, keySecretName } from './key-secret.ts';
import { grantPurpose } from './signer.ts';

/** The keys of the access feature; the type `Purpose` in signer.ts lists what they sign. */
export function signingKeys(options: Omit<KeySecretOptions, 'name' | 'purpose' | 'rereadMs'>): KeySecret {
  return new KeySecret({ ...options, name: keySecretName, purpose: grantPurpose, rereadMs: 30_000 });
}

import { randomInt } from 'node:crypto';
import { own } from '../../kit/json-value.ts';

/** The alphabet of generated suffixes in Kubernetes: no vowels and no characters that look alike. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
/** Twice the length that Kubernetes uses: if another object has the name, the API server does not generate a second one. */
const SUFFIX_LENGTH = 10;
const MAX_NAME = 63;

/**
 * A generated name if the object has only generateName; undefined otherwise. The webhook generates it because the signature covers the
 * name, and the API server generates names only after the mutating webhooks.
 */
export function generatedName(metadata: unknown): string | undefined {
  const name = own(metadata, 'name') ?? '';
  const base = own(metadata, 'generateName');
  if (name !== '' || typeof base !== 'string' || base === '') return undefined;
  let suffix = '';
  for (let i = 0; i < SUFFIX_LENGTH; i++) suffix += SUFFIX_ALPHABET[randomInt(SUFFIX_ALPHABET.length)];
  return base.slice(0, MAX_NAME - SUFFIX_LENGTH) + suffix;
}

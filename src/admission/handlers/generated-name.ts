import { randomInt } from 'node:crypto';
import { own } from '../../kit/json-value.ts';

/** Of generated suffixes in Kubernetes: no vowels, and nothing that looks alike. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
/** Twice that of Kubernetes: if the name is taken, the API server generates no second one. */
const SUFFIX_LENGTH = 10;
const MAX_NAME = 63;

/** The API server would generate the name only after this webhook, so audit lines would lack it. */
export function generatedName(metadata: unknown): string | undefined {
  const name = own(metadata, 'name') ?? '';
  const base = own(metadata, 'generateName');
  if (name !== '' || typeof base !== 'string' || base === '') return undefined;
  let suffix = '';
  for (let i = 0; i < SUFFIX_LENGTH; i++) suffix += SUFFIX_ALPHABET[randomInt(SUFFIX_ALPHABET.length)];
  return base.slice(0, MAX_NAME - SUFFIX_LENGTH) + suffix;
}

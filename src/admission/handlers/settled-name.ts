import { randomInt } from 'node:crypto';
import { own } from '../../kit/json-value.ts';

/** What Kubernetes draws generated suffixes from: no vowels, nothing that looks like something else. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
/** Twice as long as Kubernetes' own, because the apiserver does not try again when a name that we settled is taken. */
const SUFFIX_LENGTH = 10;
const MAX_NAME = 63;

/** A name where only generateName was sent: a stamp has to speak of one object, and the apiserver names it too late for that. */
export function settledName(metadata: unknown): string | undefined {
  const name = own(metadata, 'name') ?? '';
  const base = own(metadata, 'generateName');
  if (name !== '' || typeof base !== 'string' || base === '') return undefined;
  let suffix = '';
  for (let i = 0; i < SUFFIX_LENGTH; i++) suffix += SUFFIX_ALPHABET[randomInt(SUFFIX_ALPHABET.length)];
  return base.slice(0, MAX_NAME - SUFFIX_LENGTH) + suffix;
}

import type { JsonPointer } from '../../kit/json-pointer.ts';
import type { EntryContent } from '../entry.ts';
import type { Registration } from '../registration.ts';

/** What a run depends on, in short. */
export interface InputDigest {
  /** SHA-256 of the canonical JSON of the values at `reads`, the registration's generation and the force value; lower-case hex. */
  readonly digest: string;
  /** The same of each path by itself, for telling which one has changed. Not stored. */
  readonly parts: ReadonlyMap<JsonPointer, string>;
}

/** Pure. `force` is the value of the component's force annotation. A path without a value is told apart from one that holds null. */
export type DigestInputs = (
  content: EntryContent,
  registration: Pick<Registration, 'reads' | 'generation'>,
  force: string | undefined,
) => InputDigest;

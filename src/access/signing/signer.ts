import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Grant } from '../../api/access/grant.ts';
import type { RequesterAttestation, RequesterSignature } from '../../api/access/request-spec.ts';
import type { AuthorAttestation } from '../../api/access/template-spec.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { DerivedKeyPair } from '../../kit/ed25519.ts';
import { CodedError } from '../../kit/errors.ts';

/** The source of the signing keys. */
export interface KeyRing {
  /** The keys; undefined until the first successful read. */
  readonly keys: SigningKeys | undefined;
  /** Reads the keys again. Rejects if a call fails, or if there are no keys afterwards. Keys that were read before stay in use. */
  refresh(signal?: AbortSignal): Promise<void>;
}

/** The request that a grant or a child belongs to. */
interface GrantOwner {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What the MAC of an object of a grant covers. */
interface SignedChild {
  readonly requestUid: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly planHash: string;
}

/**
 * Signs and verifies requesters, authors, grants, and children. Unless stated otherwise, a method throws or rejects with
 * `SigningKeyUnavailable` until the keys are read.
 */
export class Signer {
  readonly #ring: KeyRing;
  #derived: { readonly from: Uint8Array; readonly pair: DerivedKeyPair } | undefined;

  constructor(ring: KeyRing) {
    this.#ring = ring;
  }

  get hasKeys(): boolean {
    return this.#ring.keys !== undefined;
  }

  /** Signs with a new nonce. Undefined until the keys are read. */
  signRequester(attestation: RequesterAttestation): RequesterSignature | undefined {
    const keys = this.#ring.keys;
    if (!keys) return undefined;
    const nonce = randomBytes(16).toString('base64url');
    return { nonce, signature: macOf(keys.current, 'stamp', requesterValue(attestation, nonce)) };
  }

  /** Whether this installation signed the requester. Rejects if the keys cannot be read. */
  isOurRequester(attestation: RequesterAttestation, signed: RequesterSignature, signal: AbortSignal): Promise<boolean> {
    return this.#isOurs('stamp', requesterValue(attestation, signed.nonce), signed.signature, signal);
  }

  /** As `isOurRequester`, without a refresh of the keys, for callers that a wrong `false` does not harm. Never throws. */
  isOurRequesterByCachedKeys(attestation: RequesterAttestation, signed: RequesterSignature): boolean {
    const keys = this.#ring.keys;
    return keys !== undefined && isMacOf(keys, 'stamp', requesterValue(attestation, signed.nonce), signed.signature);
  }

  /** Signs the author. Undefined until the keys are read. */
  signAuthor(attestation: AuthorAttestation): string | undefined {
    const keys = this.#ring.keys;
    return keys && macOf(keys.current, 'author', authorValue(attestation));
  }

  /** Whether this installation signed the author. Rejects if the keys cannot be read. */
  isOurAuthor(attestation: AuthorAttestation, signature: unknown, signal: AbortSignal): Promise<boolean> {
    return this.#isOurs('author', authorValue(attestation), signature, signal);
  }

  /** As `isOurAuthor`, without a refresh of the keys, for callers that then try another proof. Never throws. */
  isOurAuthorByCachedKeys(attestation: AuthorAttestation, signature: unknown): boolean {
    const keys = this.#ring.keys;
    return keys !== undefined && isMacOf(keys, 'author', authorValue(attestation), signature);
  }

  /** Returns the grant with a MAC, which the server verifies, and an Ed25519 signature, which anyone can verify. */
  signGrant(owner: GrantOwner, grant: Grant): Grant {
    const value = grantValue(owner, grant);
    const signature = this.#grantPair().sign(signedText(value));
    return { ...grant, mac: macOf(this.#keys.current, 'grant', value), signature: signature.toString('base64url') };
  }

  /** The key pair of the current key, cached because its derivation takes milliseconds. */
  #grantPair(): DerivedKeyPair {
    const { current } = this.#keys;
    if (this.#derived?.from !== current)
      this.#derived = { from: current, pair: new DerivedKeyPair(current, grantPurpose) };
    return this.#derived.pair;
  }

  /** Whether the MAC of the grant is ours. Rejects if the keys cannot be read. */
  isOurGrant(owner: GrantOwner, grant: Grant, signal: AbortSignal): Promise<boolean> {
    return this.#isOurs('grant', grantValue(owner, grant), grant.mac, signal);
  }

  /** The MAC of a child. */
  signChild(child: SignedChild): string {
    return macOf(this.#keys.current, 'child', child);
  }

  /** Whether `mac` is our MAC of the child. Rejects if the keys cannot be read. */
  isOurChild(child: SignedChild, mac: unknown, signal: AbortSignal): Promise<boolean> {
    return this.#isOurs('child', child, mac, signal);
  }

  /** Refreshes the keys before it returns false, because another replica may sign with keys that this replica has not read yet. */
  async #isOurs(purpose: Purpose, value: unknown, mac: unknown, signal: AbortSignal): Promise<boolean> {
    if (isMacOf(this.#keys, purpose, value, mac)) return true;
    await this.#ring.refresh(signal);
    return isMacOf(this.#keys, purpose, value, mac);
  }

  get #keys(): SigningKeys {
    const keys = this.#ring.keys;
    if (keys) return keys;
    throw new CodedError('SigningKeyUnavailable', 'the signing keys have not been read yet');
  }
}

/** Fields of the spec that the signature does not cover: `requester` contains the signature, and `revoked` can change later. */
const unsignedRequestFields: ReadonlySet<string> = new Set(['requester', 'revoked']);

function requesterValue({ kind, namespace, name, spec, requester }: RequesterAttestation, nonce: string): unknown {
  const { username, uid, groups, time } = requester;
  return { kind, namespace, name, username, uid, groups, time, nonce, specHash: hashOf(spec, unsignedRequestFields) };
}

/** Fields of the spec that the signature does not cover: `author` contains the signature. */
const unsignedTemplateFields: ReadonlySet<string> = new Set(['author']);

function authorValue({ version, ...attestation }: AuthorAttestation): unknown {
  return {
    ...attestation,
    ...('spec' in version ? { specHash: hashOf(version.spec, unsignedTemplateFields) } : version),
  };
}

function hashOf(spec: object, omitted: ReadonlySet<string>): string {
  const signed = Object.entries(spec).filter(([field]) => !omitted.has(field));
  return sha256Hex(canonicalJson(Object.fromEntries(signed)));
}

function grantValue({ namespace, name, uid }: GrantOwner, { mac: _, signature: __, ...grant }: Grant): unknown {
  return { namespace, name, uid, grant };
}

/** Purpose of the key pairs that sign grants. */
export const grantPurpose = 'drawbridge.dev/grant-signature/v1';

const signedText = (value: unknown): string => `${grantPurpose}\n${canonicalJson(value)}`;

/** The purpose of a MAC. A MAC for one purpose never verifies for another. */
export type Purpose = 'stamp' | 'author' | 'grant' | 'child';

/** Secret keys of at least 32 bytes. `current` signs; signatures by `previous` still verify. */
export interface SigningKeys {
  readonly current: Uint8Array;
  readonly previous?: Uint8Array;
}

/** HMAC-SHA256 over the purpose and the canonical JSON of `value`, in base64url: 43 characters. */
export function macOf(key: Uint8Array, purpose: Purpose, value: unknown): string {
  const text = `drawbridge.dev/${purpose}/v1\n${canonicalJson(value)}`;
  return createHmac('sha256', key).update(text, 'utf8').digest('base64url');
}

/** Whether `mac`, which may be any value, is the MAC of `value` under one of the keys. Compares in constant time. */
export function isMacOf(keys: SigningKeys, purpose: Purpose, value: unknown, mac: unknown): boolean {
  if (typeof mac !== 'string') return false;
  const found = Buffer.from(mac, 'utf8');
  const candidates = keys.previous ? [keys.current, keys.previous] : [keys.current];
  return candidates.some((key) => {
    // Compare the texts, because several base64 texts can encode the same bytes.
    const expected = Buffer.from(macOf(key, purpose, value), 'utf8');
    return found.length === expected.length && timingSafeEqual(found, expected);
  });
}

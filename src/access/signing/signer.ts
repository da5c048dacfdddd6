import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { VoteAttestation } from '../../api/access/access-vote.ts';
import type { Ended } from '../../api/access/ended.ts';
import type { Grant } from '../../api/access/grant.ts';
import {
  type ChangedRequest,
  mutableFields,
  type RequesterAttestation,
  type RequesterChange,
  type RequesterSignature,
} from '../../api/access/request-spec.ts';
import type { ExtensionStatus } from '../../api/access/status.ts';
import type { AuthorAttestation } from '../../api/access/template-spec.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { DerivedKeyPair, isSignedBy } from '../../kit/ed25519.ts';
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

/** The request that ended, with the grant that it had. */
interface EndedRequest extends GrantOwner {
  readonly grant?: Grant | undefined;
}

/** What the MAC of an object of a grant covers. */
interface SignedChild {
  readonly requestUid: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly planHash: string;
}

/** A vote, and the signature in it, which may be any value. */
interface SignedVote {
  readonly attestation: VoteAttestation;
  readonly signature: unknown;
}

/**
 * Signs and verifies what the server must be able to trust in objects that clients can write: see `Purpose`. Unless stated otherwise, a
 * method throws or rejects with `SigningKeyUnavailable` until the keys are read.
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

  /** Signs who created the request, with a new nonce. Undefined until the keys are read. */
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

  /**
   * As `isOurRequester`, without a refresh of the keys: false may be wrong before they are first read, and after a rotation. Never throws.
   */
  isOurRequesterByCachedKeys(attestation: RequesterAttestation, signed: RequesterSignature): boolean {
    const keys = this.#ring.keys;
    return keys !== undefined && isMacOf(keys, 'stamp', requesterValue(attestation, signed.nonce), signed.signature);
  }

  /** Signs that the requester made the change. Undefined until the keys are read. */
  signChange(request: ChangedRequest, change: RequesterChange): string | undefined {
    const keys = this.#ring.keys;
    return keys && macOf(keys.current, 'change', changeValue(request, change));
  }

  /** Whether this installation signed the change for this request. Rejects if the keys cannot be read. */
  isOurChange(
    request: ChangedRequest,
    change: RequesterChange,
    signature: unknown,
    signal: AbortSignal,
  ): Promise<boolean> {
    return this.#isOurs('change', changeValue(request, change), signature, signal);
  }

  /** Signs who voted. Undefined until the keys are read. */
  signVote(attestation: VoteAttestation): string | undefined {
    const keys = this.#ring.keys;
    return keys && macOf(keys.current, 'vote', voteValue(attestation));
  }

  /**
   * For each vote, whether this installation signed it. Refreshes the keys once if it did not sign all of them, so that many forged votes
   * cost one call. Rejects if the keys cannot be read.
   */
  async areOurVotes(votes: readonly SignedVote[], signal: AbortSignal): Promise<boolean[]> {
    const areOurs = (keys: SigningKeys): boolean[] =>
      votes.map(({ attestation, signature }) => isMacOf(keys, 'vote', voteValue(attestation), signature));
    const { keys } = this.#ring;
    const answers = keys ? areOurs(keys) : votes.map(() => false);
    if (!answers.includes(false)) return answers;
    await this.#ring.refresh(signal);
    return areOurs(this.#keys);
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
    const signature = this.#grantPair().sign(grantText(value));
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

  /** Returns the decided extension with a MAC and, as `signGrant`, a signature. `index` counts from 0. */
  signExtension(owner: GrantOwner, grant: Grant, index: number, extension: ExtensionStatus): ExtensionStatus {
    const signature = this.#grantPair().sign(extensionText(owner, grant, index, extension));
    const signed = { ...extension, signature: signature.toString('base64url') };
    return { ...signed, mac: macOf(this.#keys.current, 'extension', extensionValue(owner, grant, index, signed)) };
  }

  /**
   * Whether the MAC of the decided extension is ours. `index` counts from 0. Does not refresh the keys: a wrong `false` never prolongs
   * access. Never throws.
   */
  isOurExtensionByCachedKeys(owner: GrantOwner, grant: Grant, index: number, extension: ExtensionStatus): boolean {
    const keys = this.#ring.keys;
    const value = extensionValue(owner, grant, index, extension);
    return keys !== undefined && isMacOf(keys, 'extension', value, extension.mac);
  }

  /** Returns the end of the request with a MAC. */
  signEnd(owner: EndedRequest, ended: Ended): Ended {
    return { ...ended, mac: macOf(this.#keys.current, 'end', endValue(owner, ended)) };
  }

  /** Whether the MAC of the end is ours. Rejects if the keys cannot be read. */
  isOurEnd(owner: EndedRequest, ended: Ended, signal: AbortSignal): Promise<boolean> {
    return this.#isOurs('end', endValue(owner, ended), ended.mac, signal);
  }

  /** As `isOurEnd`, without a refresh of the keys. Never throws. */
  isOurEndByCachedKeys(owner: EndedRequest, ended: Ended): boolean {
    const keys = this.#ring.keys;
    return keys !== undefined && isMacOf(keys, 'end', endValue(owner, ended), ended.mac);
  }

  /** Returns the MAC of an owed review. */
  signReview(review: object): string {
    return macOf(this.#keys.current, 'review', review);
  }

  /** Whether `mac` is our MAC of the review. Does not refresh the keys, because callers read many reviews at once. Never throws. */
  isOurReviewByCachedKeys(review: object, mac: unknown): boolean {
    const keys = this.#ring.keys;
    return keys !== undefined && isMacOf(keys, 'review', review, mac);
  }

  /** Returns the MAC of a child: a Pod, Role, or RoleBinding of a grant. */
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

/** Fields of the spec that the signature does not cover: `requester` holds the signature, and the others can change later. */
const unsignedRequestFields: ReadonlySet<string> = new Set(['requester', ...mutableFields]);

function requesterValue({ kind, namespace, name, spec, requester }: RequesterAttestation, nonce: string): unknown {
  const { username, uid, groups, time } = requester;
  return { kind, namespace, name, username, uid, groups, time, nonce, specHash: hashOf(spec, unsignedRequestFields) };
}

const unsignedVoteFields: ReadonlySet<string> = new Set(['voter']);

function voteValue({ namespace, name, spec, voter }: VoteAttestation): unknown {
  const { username, uid, groups, time } = voter;
  return { namespace, name, username, uid, groups, time, specHash: hashOf(spec, unsignedVoteFields) };
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

function changeValue({ namespace, name, uid }: ChangedRequest, change: RequesterChange): unknown {
  return { namespace, name, uid, change };
}

function extensionValue(
  { namespace, name, uid }: GrantOwner,
  { planHash, expiresAt }: Grant,
  index: number,
  { mac: _, ...extension }: ExtensionStatus,
): unknown {
  return { namespace, name, uid, planHash, expiresAt, index, extension };
}

function endValue({ namespace, name, uid, grant }: EndedRequest, { mac: _, ...ended }: Ended): unknown {
  return { namespace, name, uid, grant: grant ?? null, ended };
}

/** Purpose of the key pairs that sign grants. */
export const grantPurpose = 'drawbridge.dev/grant-signature/v1';

const grantText = (value: unknown): string => `${grantPurpose}\n${canonicalJson(value)}`;
/** One key pair signs grants and extensions. The first lines of their texts differ, so a signature of one never verifies for the other. */
function extensionText(
  owner: GrantOwner,
  grant: Grant,
  index: number,
  { signature: _, ...extension }: ExtensionStatus,
): string {
  return `drawbridge.dev/extension-signature/v1\n${canonicalJson(extensionValue(owner, grant, index, extension))}`;
}

/** Verifies grants and extensions by their signatures, without a secret key. `publicKeys`: Ed25519, 32 bytes each. */
export class GrantVerifier {
  readonly #publicKeys: readonly Uint8Array[];

  constructor(publicKeys: readonly Uint8Array[]) {
    this.#publicKeys = publicKeys;
  }

  /** Whether the holder of one of the keys signed the grant of this request. */
  isGrantOf(owner: GrantOwner, grant: Grant): boolean {
    return this.#isSigned(grantText(grantValue(owner, grant)), grant.signature);
  }

  /** Whether the holder of one of the keys signed the decision about the extension. `index` counts from 0. */
  isExtensionOf(owner: GrantOwner, grant: Grant, index: number, extension: ExtensionStatus): boolean {
    return this.#isSigned(extensionText(owner, grant, index, extension), extension.signature);
  }

  #isSigned(text: string, signature: string | undefined): boolean {
    if (signature === undefined) return false;
    const bytes = Buffer.from(signature, 'base64url');
    return this.#publicKeys.some((key) => isSignedBy(key, text, bytes));
  }
}

/**
 * What a MAC is for. `stamp`: the requester of a request (a former name, kept because stored MACs cover it). `author`: the author of a
 * template. `grant`: `status.grant`. `child`: an object of a grant. `change`: the requester's claim, or request for an extension.
 * `extension`: the leader's decision about an extension. `vote`: the voter. `review`: an owed review. `end`: `status.ended`. A MAC for one
 * purpose never verifies for another.
 */
export type Purpose = 'stamp' | 'author' | 'grant' | 'child' | 'change' | 'extension' | 'vote' | 'review' | 'end';

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

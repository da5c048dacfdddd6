import type { Requester, RequesterAttestation, RequesterSignature } from '../../api/access/request-spec.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Violation } from '../policy/policy.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView } from '../stores/access-views.ts';

/** A request may be created this much before its signature: clocks differ, times are rounded. */
const skewMs = 2000;
/** A request may be created this much after its signature. */
const validMs = 10_000;
/** The API server rounds creation times down to whole seconds. */
const roundingMs = 1000;
/** Monotonic milliseconds: longer than any signature is valid. */
const nonceRetentionMs = 60_000;

interface FirstUse {
  readonly uid: string;
  /** Milliseconds on the monotonic clock. */
  readonly monotonicMs: number;
}

/**
 * Verifies that our webhook signed the requester for this request, shortly before its creation. No
 * signature covers the uid, which comes later: a nonce belongs to the first uid that has it.
 */
export class RequesterAttestations {
  readonly #deps: { readonly kind: string; readonly signer: Signer; readonly clock: Clock };
  /** By nonce, oldest first. */
  readonly #firstUses = new Map<string, FirstUse>();

  constructor(deps: { kind: string; signer: Signer; clock: Clock }) {
    this.#deps = deps;
  }

  /** Records the nonce, so that no later request can reuse it, even if this one is denied. */
  observe(request: RequestView): void {
    const signed = this.#attestationOf(request);
    if (signed && this.#deps.signer.isOurRequesterByCachedKeys(signed.attestation, signed.signature))
      this.#claimNonce(signed.signature, request.uid);
  }

  /**
   * `StampMissing`, `StampInvalid`, `StampExpired`, or `StampReplayed`: the signature is the stamp.
   * Rejects if the keys cannot be read.
   */
  async violation(request: RequestView, signal: AbortSignal): Promise<Violation | undefined> {
    const signed = this.#attestationOf(request);
    if (!signed) {
      return refuse(
        'StampMissing',
        'spec.requester has no signature: the API server did not call the webhooks of drawbridge, or the CRDs are older than the server',
        'apply the CRDs and the webhook configurations',
      );
    }
    if (!(await this.#deps.signer.isOurRequester(signed.attestation, signed.signature, signal))) {
      return refuse(
        'StampInvalid',
        'the webhook of drawbridge did not create the signature in spec.requester for this request',
        'find out which client or webhook changed the request',
      );
    }
    const age = request.createdAtMs - (parseTime(signed.attestation.requester.time) ?? Number.NaN);
    if (!(age >= -skewMs && age <= validMs)) {
      return refuse(
        'StampExpired',
        `the webhook signed spec.requester ${ageText(age)} the request was created; allowed are ${ageText(validMs)} to ${ageText(-skewMs)} it`,
        'synchronize the clocks of the API server and of drawbridge',
      );
    }
    if (this.#claimNonce(signed.signature, request.uid)) return undefined;
    return refuse('StampReplayed', 'an earlier request has the same signature');
  }

  /** Returns whether the nonce belongs to this uid. */
  #claimNonce({ nonce }: RequesterSignature, uid: string): boolean {
    const monotonicMs = this.#deps.clock.monotonic();
    for (const [oldNonce, use] of this.#firstUses) {
      if (use.monotonicMs > monotonicMs - nonceRetentionMs) break;
      this.#firstUses.delete(oldNonce);
    }
    const first = this.#firstUses.get(nonce);
    if (!first) this.#firstUses.set(nonce, { uid, monotonicMs });
    return first === undefined || first.uid === uid;
  }

  #attestationOf({
    namespace,
    name,
    spec,
  }: RequestView): { attestation: RequesterAttestation; signature: RequesterSignature } | undefined {
    const { requester } = spec;
    const signature = requester && signatureOf(requester);
    if (!requester || !signature) return undefined;
    return { attestation: { kind: this.#deps.kind, namespace, name, spec, requester }, signature };
  }
}

/**
 * Epoch ms. Later, the requester's signature is too old to be replayed, so the name may be free.
 */
export function finalizerUntilMs({ spec: { requester }, createdAtMs }: RequestView): number {
  if (!requester || !signatureOf(requester)) return createdAtMs;
  // The signature is not verified here, so cap its time at the latest valid one.
  const attestedMs = Math.min(parseTime(requester.time) ?? 0, createdAtMs + skewMs);
  return Math.max(createdAtMs + validMs, attestedMs + validMs + roundingMs);
}

function signatureOf({ nonce, signature }: Requester): RequesterSignature | undefined {
  return nonce !== undefined && signature !== undefined ? { nonce, signature } : undefined;
}

/** Such as `10 s before`. */
const ageText = (ageMs: number): string => `${Math.abs(ageMs) / 1000} s ${ageMs < 0 ? 'after' : 'before'}`;

/** `correction`: what an administrator does if a new request is denied as well. */
const refuse = (code: Violation['code'], reason: string, correction?: string): Violation => ({
  code,
  message: `${reason}; create a new request${correction === undefined ? '' : `; if that is denied too, ask an administrator to ${correction}`}`,
  field: 'spec.requester',
  status: 403,
});

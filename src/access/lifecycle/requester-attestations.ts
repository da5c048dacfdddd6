import type { Requester, RequesterAttestation, RequesterSignature } from '../../api/access/request-spec.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Violation } from '../policy/policy.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView } from '../stores/access-views.ts';

/**
 * Maximum time that a request may be created before its signature, milliseconds: the clocks of two machines differ, and timestamps have
 * whole seconds.
 */
const skewMs = 2000;
/** Maximum time that a request may be created after its signature, milliseconds. */
const validMs = 10_000;
/** Rounding of creation times, milliseconds: the API server rounds them down to whole seconds. */
const roundingMs = 1000;
/** How long the nonce of a request is kept, milliseconds on the monotonic clock: longer than any signature is valid. */
const nonceRetentionMs = 60_000;

/** The first request that had a nonce. */
interface FirstUse {
  readonly uid: string;
  /** Time of the observation, milliseconds on the monotonic clock. */
  readonly monotonicMs: number;
}

/**
 * Verifies that our webhook signed the requester for this request shortly before its creation, and that no earlier request has the same
 * nonce. The signature does not cover the uid, which the API server assigns after the webhook, so a nonce belongs to the first uid with it.
 */
export class RequesterAttestations {
  readonly #deps: { readonly kind: string; readonly signer: Signer; readonly clock: Clock };
  /** By nonce, oldest first. */
  readonly #firstUses = new Map<string, FirstUse>();

  constructor(deps: { kind: string; signer: Signer; clock: Clock }) {
    this.#deps = deps;
  }

  /**
   * Records the nonce of a new request if the cached keys verify its signature. So no later request can reuse it, even if this one is
   * denied.
   */
  observe(request: RequestView): void {
    const signed = this.#attestationOf(request);
    if (signed && this.#deps.signer.isOurRequesterByCachedKeys(signed.attestation, signed.signature))
      this.#claimNonce(signed.signature, request.uid);
  }

  /**
   * Why the requester is not verified; undefined if our webhook signed it for this request. Codes `StampMissing`, `StampInvalid`,
   * `StampExpired`, and `StampReplayed`, in which a stamp is the signature in `spec.requester`. Rejects if the keys cannot be read.
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

  /** Records the nonce for `uid`, and returns whether it belongs to this uid. */
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
 * The earliest time, epoch ms, to remove the finalizer. Until then, the name of the request is in use; afterwards, its signature is too old
 * to be replayed. For a request without a signature, it is the creation time.
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

/** An age in milliseconds, such as `10 s before`. */
const ageText = (ageMs: number): string => `${Math.abs(ageMs) / 1000} s ${ageMs < 0 ? 'after' : 'before'}`;

/** `correction`: what an administrator does if a new request is denied, too; absent if a new request always helps. */
const refuse = (code: Violation['code'], reason: string, correction?: string): Violation => ({
  code,
  message: `${reason}; create a new request${correction === undefined ? '' : `; if that is denied too, ask an administrator to ${correction}`}`,
  field: 'spec.requester',
  status: 403,
});

import type { Requester, RequesterAttestation, RequesterSignature } from '../../api/access/request-spec.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Violation } from '../policy/policy.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView } from '../stores/access-views.ts';

/** Longest time that a request may be created before its signature, milliseconds: two machines have two clocks, in whole seconds. */
const skewMs = 2000;
/** Longest time that a request may be created after its signature, milliseconds. */
const validMs = 10_000;
/** The API server rounds creation times down, so the real creation may be up to this much later, milliseconds. */
const roundingMs = 1000;
/** How long nonces are remembered, milliseconds on the monotonic clock: longer than any signature is valid. */
const nonceRetentionMs = 60_000;

interface FirstUse {
  readonly uid: string;
  readonly monotonicMs: number;
}

/**
 * Verifies that our webhook signed the requester for this request, shortly before its creation, and that no earlier request has the same
 * nonce. The API server assigns the uid after the webhook, so the first uid that shows a nonce owns it.
 */
export class RequesterAttestations {
  readonly #deps: { readonly kind: string; readonly signer: Signer; readonly clock: Clock };
  /** By nonce, oldest first. */
  readonly #firstUses = new Map<string, FirstUse>();

  constructor(deps: { kind: string; signer: Signer; clock: Clock }) {
    this.#deps = deps;
  }

  /** Records the nonce of a request that is seen for the first time, even if it will be denied, so that no later request can reuse it. */
  observe(request: RequestView): void {
    const signed = this.#attestationOf(request);
    if (signed && this.#deps.signer.isOurRequesterByCachedKeys(signed.attestation, signed.signature))
      this.#claimNonce(signed.signature, request.uid);
  }

  /** Why the requester is not proven; undefined if it is. Rejects if the keys cannot be read. */
  async violation(request: RequestView, signal: AbortSignal): Promise<Violation | undefined> {
    const signed = this.#attestationOf(request);
    if (!signed) {
      return refuse(
        'StampMissing',
        'spec.requester has no signature: the request was created while the webhooks of drawbridge were not called',
      );
    }
    if (!(await this.#deps.signer.isOurRequester(signed.attestation, signed.signature, signal))) {
      return refuse(
        'StampInvalid',
        'the webhook of drawbridge did not create the signature in spec.requester for this request',
      );
    }
    const age = request.createdAtMs - (parseTime(signed.attestation.requester.time) ?? Number.NaN);
    if (!(age >= -skewMs && age <= validMs)) {
      return refuse(
        'StampExpired',
        `the requester was signed ${age / 1000} s before the request was created; allowed are ${-skewMs / 1000} s to ${validMs / 1000} s`,
      );
    }
    if (this.#claimNonce(signed.signature, request.uid)) return undefined;
    return refuse('StampReplayed', 'an earlier request has the same signature');
  }

  /** Whether `uid` is the first that shows the nonce. */
  #claimNonce({ nonce }: RequesterSignature, uid: string): boolean {
    const monotonicMs = this.#deps.clock.monotonic();
    for (const [old, use] of this.#firstUses) {
      if (use.monotonicMs > monotonicMs - nonceRetentionMs) break;
      this.#firstUses.delete(old);
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
 * Until when (epoch ms) the finalizer keeps a request. While it exists, no other request can have its name; afterwards its signature is
 * too old to be replayed. A request without a signature need not be kept.
 */
export function retainUntilMs({ spec: { requester }, createdAtMs }: RequestView): number {
  if (!requester || !signatureOf(requester)) return createdAtMs;
  // The time is not verified here, so it counts only within the range that could be valid.
  const attestedMs = Math.min(parseTime(requester.time) ?? 0, createdAtMs + skewMs);
  return Math.max(createdAtMs + validMs, attestedMs + validMs + roundingMs);
}

function signatureOf({ nonce, signature }: Requester): RequesterSignature | undefined {
  return nonce !== undefined && signature !== undefined ? { nonce, signature } : undefined;
}

const refuse = (code: Violation['code'], reason: string): Violation => ({
  code,
  message: `${reason}; create a new request`,
  field: 'spec.requester',
  status: 403,
});

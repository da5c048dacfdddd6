import type { Requester, RequesterAttestation, RequesterSignature } from '../../api/access/request-spec.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Violation } from '../policy/policy.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView } from '../stores/access-views.ts';

/** How far before its stamp a request may have been created, by the clocks of two machines in whole seconds. */
const skewMs = 2000;
/** How long after its stamp. */
const validMs = 10_000;
/** Creation times are rounded down, so one that reads as valid may be up to this much later. */
const roundingMs = 1000;
/** Nonces are remembered longer than any stamp is valid, by monotonic time. */
const nonceRetentionMs = 60_000;

interface FirstUse {
  readonly uid: string;
  readonly monotonicMs: number;
}

/**
 * Judges attestations: made by our webhook, for this request, not long before its creation, and shown for the first time. The API server
 * gives the uid only after the webhook, so the first uid that shows a nonce owns it.
 */
export class RequesterAttestations {
  readonly #deps: { readonly kind: string; readonly signer: Signer; readonly clock: Clock };
  /** By nonce, oldest first. */
  readonly #firstUses = new Map<string, FirstUse>();

  constructor(deps: { kind: string; signer: Signer; clock: Clock }) {
    this.#deps = deps;
  }

  /** Tells of a request at the first sight of it, even of one that nothing will come of: a later one must not use its stamp. */
  observe(request: RequestView): void {
    const signed = this.#attestationOf(request);
    if (signed && this.#deps.signer.isOurRequesterByCachedKeys(signed.stamp, signed.seal))
      this.#claimNonce(signed.seal, request.uid);
  }

  /** Why the request has no stamp that counts; undefined when it has. Rejects while that cannot be told. */
  async violation(request: RequestView, signal: AbortSignal): Promise<Violation | undefined> {
    const stamped = this.#attestationOf(request);
    if (!stamped) {
      return refuse(
        'StampMissing',
        'nobody vouches for the requester: the request was made while the webhooks of drawbridge were away',
      );
    }
    if (!(await this.#deps.signer.isOurRequester(stamped.stamp, stamped.seal, signal))) {
      return refuse('StampInvalid', 'the stamp in spec.requester was not made by drawbridge for this request');
    }
    const age = request.createdAtMs - (parseTime(stamped.stamp.requester.time) ?? Number.NaN);
    if (!(age >= -skewMs && age <= validMs)) {
      return refuse(
        'StampExpired',
        `the stamp was made ${age / 1000} s before the request; from ${-skewMs / 1000} s to ${validMs / 1000} s are allowed`,
      );
    }
    if (this.#claimNonce(stamped.seal, request.uid)) return undefined;
    return refuse('StampReplayed', 'the stamp was made for an earlier request');
  }

  /** True for the first uid that shows the nonce. */
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
  }: RequestView): { stamp: RequesterAttestation; seal: RequesterSignature } | undefined {
    const { requester } = spec;
    const seal = requester && signatureOf(requester);
    if (!requester || !seal) return undefined;
    return { stamp: { kind: this.#deps.kind, namespace, name, spec, requester }, seal };
  }
}

/**
 * Until when (epoch ms) a request must not vanish: while it is there nobody can make another one of its name, and afterwards its
 * stamp is too old for that. One without a seal may go at once.
 */
export function retainUntilMs({ spec: { requester }, createdAtMs }: RequestView): number {
  if (!requester || !signatureOf(requester)) return createdAtMs;
  // Nobody has verified it, so it counts only as far as it could be valid.
  const attestedMs = Math.min(parseTime(requester.time) ?? 0, createdAtMs + skewMs);
  return Math.max(createdAtMs + validMs, attestedMs + validMs + roundingMs);
}

function signatureOf({ nonce, signature }: Requester): RequesterSignature | undefined {
  return nonce !== undefined && signature !== undefined ? { nonce, signature } : undefined;
}

const refuse = (code: Violation['code'], reason: string): Violation => ({
  code,
  message: `${reason}; make a new request`,
  field: 'spec.requester',
  status: 403,
});

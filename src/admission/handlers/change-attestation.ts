import { isRequester } from '../../access/policy/change-policy.ts';
import { claimSignature, type RequesterChange } from '../../api/access/request-spec.ts';
import { formatTime } from '../../kit/clock.ts';
import { isRecord, listIn, own, sameJson } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { type Decision, deny } from '../decision.ts';
import type { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';

type Ports = Pick<AdmissionPorts, 'clock' | 'signChange'>;

/**
 * Signs a claim and a new extension of the requester in `patch`, and restores omitted signatures.
 * The validating webhook denies changes of others.
 */
export function attestChanges(review: Review, patch: PatchBuilder, ports: Ports): Decision | undefined {
  return attestClaim(review, patch, ports) ?? attestExtensions(review, patch, ports);
}

function attestClaim(review: Review, patch: PatchBuilder, ports: Ports): Decision | undefined {
  const before = own(review.oldObject, 'spec');
  const now = own(review.object, 'spec');
  if (own(before, 'claimed') === true) {
    const signature = own(before, 'claimSignature');
    if (isAbsent(own(now, 'claimSignature')) && !isAbsent(signature)) patch.set(['spec', 'claimSignature'], signature);
    return undefined;
  }
  if (own(now, 'claimed') !== true) return undefined;
  if (!maySign(review)) {
    patch.remove(['spec', 'claimSignature']);
    return undefined;
  }
  const time = formatTime(ports.clock.now());
  const mac = sign(review, { field: 'claimed', time }, ports);
  if (mac === undefined) return keysUnavailable;
  patch.set(['spec', 'claimSignature'], claimSignature(time, mac));
  return undefined;
}

/** Only the first, because the validating webhook denies more than one. */
function attestExtensions(review: Review, patch: PatchBuilder, ports: Ports): Decision | undefined {
  const earlier = listIn(own(review.oldObject, 'spec'), 'extensions');
  const requested = listIn(own(review.object, 'spec'), 'extensions');
  const attested = requested.map((extension, position) =>
    position < earlier.length ? withSignatureOf(earlier[position], extension) : withoutSignature(extension),
  );
  const index = earlier.length;
  const added = attested[index];
  const by = own(added, 'by');
  if (isRecord(added) && typeof by === 'string' && maySign(review)) {
    const reason = own(added, 'reason');
    const change = { field: 'extensions', index, by, ...(typeof reason === 'string' ? { reason } : {}) } as const;
    const signature = sign(review, change, ports);
    if (signature === undefined) return keysUnavailable;
    attested[index] = { ...added, signature };
  }
  if (!sameJson(attested, requested)) patch.set(['spec', 'extensions'], attested);
  return undefined;
}

/** Clients that apply a manifest omit the signature. */
function withSignatureOf(earlier: unknown, extension: unknown): unknown {
  const signature = own(earlier, 'signature');
  if (!isRecord(extension) || !isAbsent(own(extension, 'signature')) || isAbsent(signature)) return extension;
  return { ...extension, signature };
}

function withoutSignature(extension: unknown): unknown {
  if (!isRecord(extension)) return extension;
  const { signature: _, ...unsigned } = extension;
  return unsigned;
}

/**
 * By the requester, and no dry run, whose signature the caller could store without this webhook.
 */
function maySign({ user, oldObject, dryRun }: Review): boolean {
  const requester = own(own(oldObject, 'spec'), 'requester');
  if (dryRun || !isRecord(requester)) return false;
  return isRequester(user, { username: textOf(own(requester, 'username')), uid: textOf(own(requester, 'uid')) });
}

function sign({ namespace, oldObject }: Review, change: RequesterChange, ports: Ports): string | undefined {
  const metadata = own(oldObject, 'metadata');
  const owner = { namespace, name: textOf(own(metadata, 'name')), uid: textOf(own(metadata, 'uid')) };
  return ports.signChange(owner, change);
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const keysUnavailable = deny({
  code: 'SigningKeyUnavailable',
  message: 'this server has not read its signing keys yet; a change without a signature has no effect; try again',
  status: 503,
});

import { isDeepStrictEqual } from 'node:util';
import type { RequestKind } from '../../api/access/kinds.ts';
import { revokeFinalizer } from '../../api/access/names.ts';
import type { Requester } from '../../api/access/request-spec.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { copyJson, isRecord, type JsonObject, own, strings } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { allow, type Decision, deny, type Handler } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';
import { attestChanges } from './change-attestation.ts';
import { generatedName } from './generated-name.ts';

/** Size of a spec without its requester, as `copyJson` weighs it. CRDs are checked only later. */
const MAX_SPEC = 64 * 1024;

type Ports = Pick<AdmissionPorts, 'clock' | 'signRequester' | 'signChange'>;

/**
 * Mutating webhook of requests. CREATE: signs the requester (not in a dry run), and sets our
 * finalizer alone and no owner, so that nothing else keeps or deletes the request. UPDATE: signs
 * claims and extensions, and restores an omitted requester or finalizer.
 */
export function attestRequester(kind: RequestKind, ports: Ports): Handler {
  return {
    decide(review) {
      const { object } = review;
      if (!isRecord(object)) return invalidObject('the review has no object');
      if (!isAbsentOrRecord(own(object, 'metadata'))) return invalidObject('metadata must be an object', 'metadata');
      const spec = own(object, 'spec');
      if (!isRecord(spec)) return invalidObject('spec must be an object with a templateName', 'spec');
      return review.operation === 'CREATE' ? attestNewRequest(kind, review, spec, ports) : attestUpdate(review, ports);
    },
  };
}

function attestNewRequest(kind: RequestKind, review: Review, spec: JsonObject, ports: Ports): Decision {
  const { object, user, namespace } = review;
  if (user.username === '') {
    return deny({
      code: 'MissingIdentity',
      message: 'this call has no authenticated user; access needs one; log in and create the request again',
      status: 403,
    });
  }
  const { requester: _, ...requestedSpec } = spec;
  const copy = copyJson(requestedSpec, MAX_SPEC);
  if ('problem' in copy)
    return invalidObject(`spec ${copy.problem}; ${copy.tooLarge ? 'shorten' : 'correct'} it`, 'spec');
  const patch = new PatchBuilder(object);
  const metadata = own(object, 'metadata');
  const name = generatedName(metadata);
  if (name !== undefined) patch.set(['metadata', 'name'], name);
  if (!isDeepStrictEqual(own(metadata, 'finalizers'), [revokeFinalizer])) {
    patch.set(['metadata', 'finalizers'], [revokeFinalizer]);
  }
  patch.remove(['metadata', 'ownerReferences']);
  const requester = requesterOf(user, ports.clock);
  // A dry run returns the object, whose signature the caller could store without this webhook.
  if (review.dryRun) {
    patch.set(['spec', 'requester'], requester);
    return { patch: patch.ops };
  }
  const signature = ports.signRequester({
    kind,
    namespace,
    name: name ?? textOf(own(metadata, 'name')),
    spec,
    requester,
  });
  if (!signature) return keysUnavailable;
  patch.set(['spec', 'requester'], { ...requester, ...signature });
  return { patch: patch.ops };
}

function attestUpdate(review: Review, ports: Ports): Decision {
  const { object, oldObject } = review;
  const patch = new PatchBuilder(object);
  const before = own(own(oldObject, 'spec'), 'requester') ?? undefined;
  // Clients that replace the object omit it. The validating webhook denies other changes.
  if (before !== undefined && (own(own(object, 'spec'), 'requester') ?? undefined) === undefined) {
    patch.set(['spec', 'requester'], before);
  }
  const denial = attestChanges(review, patch, ports);
  if (denial) return denial;
  const metadata = own(object, 'metadata');
  if (!isSet(own(metadata, 'deletionTimestamp'))) {
    const finalizers = strings(own(metadata, 'finalizers'));
    const hadFinalizer = strings(own(own(oldObject, 'metadata'), 'finalizers')).includes(revokeFinalizer);
    if (hadFinalizer && !finalizers.includes(revokeFinalizer)) {
      patch.set(['metadata', 'finalizers'], [...finalizers, revokeFinalizer]);
    }
  }
  return patch.ops.length > 0 ? { patch: patch.ops } : allow;
}

function requesterOf(user: UserInfo, clock: Clock): Requester {
  return { username: user.username, uid: user.uid, groups: [...user.groups], time: formatTime(clock.now()) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
const isAbsentOrRecord = (value: unknown): boolean => value === undefined || value === null || isRecord(value);

const invalidObject = (message: string, field?: string): Decision =>
  deny({ code: 'InvalidObject', message, status: 422, ...(field === undefined ? {} : { field }) });

const keysUnavailable = deny({
  code: 'SigningKeyUnavailable',
  message: 'this server has not read its signing keys yet; a request without a signature is never granted; try again',
  status: 503,
});

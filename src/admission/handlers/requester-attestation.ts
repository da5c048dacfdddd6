import { isDeepStrictEqual } from 'node:util';
import { revokeFinalizer } from '../../api/access/names.ts';
import type { Requester } from '../../api/access/request-spec.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { copyJson, isRecord, type JsonObject, own, strings } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { allow, type Decision, deny, type Handler } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';
import { generatedName } from './generated-name.ts';

/** Size of a spec without its requester, as `copyJson` weighs it. CRDs are checked only later. */
const MAX_SPEC = 64 * 1024;

type Ports = Pick<AdmissionPorts, 'clock'>;

/**
 * Mutating webhook of requests. CREATE: sets the requester, our finalizer alone, and no owner, so
 * that nothing else keeps or deletes the request. UPDATE: restores an omitted requester or
 * finalizer. A policy certifies the requester.
 */
export function attestRequester(ports: Ports): Handler {
  return {
    decide(review) {
      const { object } = review;
      if (!isRecord(object)) return invalidObject('the review has no object');
      if (!isAbsentOrRecord(own(object, 'metadata'))) return invalidObject('metadata must be an object', 'metadata');
      const spec = own(object, 'spec');
      if (!isRecord(spec)) return invalidObject('spec must be an object with a templateName', 'spec');
      return review.operation === 'CREATE' ? attestNewRequest(review, spec, ports) : attestUpdate(review);
    },
  };
}

function attestNewRequest(review: Review, spec: JsonObject, ports: Ports): Decision {
  const { object, user } = review;
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
  patch.set(['spec', 'requester'], requesterOf(user, ports.clock));
  return { patch: patch.ops };
}

function attestUpdate(review: Review): Decision {
  const { object, oldObject } = review;
  const patch = new PatchBuilder(object);
  const before = own(own(oldObject, 'spec'), 'requester') ?? undefined;
  // Clients that replace the object omit it. The validating webhook denies other changes.
  if (before !== undefined && (own(own(object, 'spec'), 'requester') ?? undefined) === undefined) {
    patch.set(['spec', 'requester'], before);
  }
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

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
const isAbsentOrRecord = (value: unknown): boolean => value === undefined || value === null || isRecord(value);

const invalidObject = (message: string, field?: string): Decision =>
  deny({ code: 'InvalidObject', message, status: 422, ...(field === undefined ? {} : { field }) });

import { isDeepStrictEqual } from 'node:util';
import type { RequestKind } from '../../api/access/kinds.ts';
import { revokeFinalizer } from '../../api/access/names.ts';
import type { Requester } from '../../api/access/request-spec.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { isRecord, own, strings } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { allow, type Decision, type Handler, refuse } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';
import { settledName } from './settled-name.ts';

type Ports = Pick<AdmissionPorts, 'clock' | 'sealStamp'>;

/** Mutating webhook of the requests: says who asks, signs that, and leaves nothing in the object that could keep it from being revoked. */
export function attestRequester(kind: RequestKind, ports: Ports): Handler {
  return {
    decide(review) {
      const { object } = review;
      if (!isRecord(object)) return unusable('the review carries no object');
      if (!isAbsentOrRecord(own(object, 'metadata'))) return unusable('metadata must be an object', 'metadata');
      const spec = own(object, 'spec');
      if (!isRecord(spec)) return unusable('spec must be an object with a templateName', 'spec');
      return review.operation === 'CREATE' ? stampNew(kind, review, spec, ports) : keepStamp(review);
    },
  };
}

function stampNew(kind: RequestKind, review: Review, spec: object, ports: Ports): Decision {
  const { object, user, namespace } = review;
  if (user.username === '') {
    return refuse({
      code: 'MissingIdentity',
      message: 'access is granted to a person, and this request has no authenticated user; log in and create it again',
      status: 403,
    });
  }
  const patch = new PatchBuilder(object);
  const metadata = own(object, 'metadata');
  const name = settledName(metadata);
  if (name !== undefined) patch.set(['metadata', 'name'], name);
  // Only these two decide whether a delete goes through: somebody else's would keep the request, and with it the access, alive.
  if (!isDeepStrictEqual(own(metadata, 'finalizers'), [revokeFinalizer])) {
    patch.set(['metadata', 'finalizers'], [revokeFinalizer]);
  }
  patch.remove(['metadata', 'ownerReferences']);
  const requester = requesterOf(user, ports.clock);
  // Nobody reads the seal of a dry run, and in the caller's hands it would be good for a request that passes us by.
  if (review.dryRun) {
    patch.set(['spec', 'requester'], requester);
    return { patch: patch.ops };
  }
  const seal = ports.sealStamp({ kind, namespace, name: name ?? textOf(own(metadata, 'name')), spec, requester });
  if (!seal) return keysUnavailable;
  patch.set(['spec', 'requester'], { ...requester, ...seal });
  return { patch: patch.ops };
}

function keepStamp({ object, oldObject }: Review): Decision {
  const patch = new PatchBuilder(object);
  const before = own(own(oldObject, 'spec'), 'requester') ?? undefined;
  // A client that replaces the object from its own manifest does not know the field; changing it is for validation to refuse.
  if (before !== undefined && (own(own(object, 'spec'), 'requester') ?? undefined) === undefined) {
    patch.set(['spec', 'requester'], before);
  }
  const metadata = own(object, 'metadata');
  if (!isSet(own(metadata, 'deletionTimestamp'))) {
    const finalizers = strings(own(metadata, 'finalizers'));
    const had = strings(own(own(oldObject, 'metadata'), 'finalizers')).includes(revokeFinalizer);
    if (had && !finalizers.includes(revokeFinalizer)) {
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

const unusable = (message: string, field?: string): Decision =>
  refuse({ code: 'InvalidObject', message, status: 422, ...(field === undefined ? {} : { field }) });

const keysUnavailable = refuse({
  code: 'SigningKeyUnavailable',
  message: 'this server has not read its signing keys yet, and what it cannot sign would never be granted; try again',
  status: 503,
});

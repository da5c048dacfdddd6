import { isDeepStrictEqual } from 'node:util';
import { formatTime } from '../../kit/clock.ts';
import { copyJson, isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { allow, type Decision, deny, type Handler } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';
import { generatedName } from './generated-name.ts';

/** Size of a spec without its author, as `copyJson` weighs it. Templates contain whole pods. */
const MAX_SPEC = 1024 * 1024;

type Ports = Pick<AdmissionPorts, 'clock'>;

/**
 * Mutating webhook of templates: the caller is the author of a new spec, or if the caller sets
 * another author. A policy certifies it.
 */
export function attestAuthor(ports: Ports): Handler {
  return {
    decide(review) {
      const spec = own(review.object, 'spec');
      if (!isRecord(spec)) return invalidSpec('spec must be an object');
      if (review.operation === 'CREATE') return attestSpec(review, spec, ports);
      const before = own(review.oldObject, 'spec');
      const attested = own(before, 'author') ?? undefined;
      const claimed = own(spec, 'author') ?? undefined;
      if (!isDeepStrictEqual(withoutAuthor(spec), withoutAuthor(before))) {
        return attestSpec(review, spec, ports);
      }
      // An unchanged spec has no limit: without the webhook, a larger one may have been stored.
      if (isDeepStrictEqual(claimed, attested)) return allow;
      // Manifests omit the field. A caller that sets it to another value becomes the author.
      if (claimed !== undefined) return attest(review, ports);
      return { patch: new PatchBuilder(review.object).set(['spec', 'author'], attested).ops };
    },
  };
}

function attestSpec(review: Review, spec: JsonObject, ports: Ports): Decision {
  const copy = copyJson(withoutAuthor(spec), MAX_SPEC);
  return 'problem' in copy
    ? invalidSpec(`spec ${copy.problem}; ${copy.tooLarge ? 'shorten' : 'correct'} it`)
    : attest(review, ports);
}

function attest(review: Review, ports: Ports): Decision {
  const { object, user } = review;
  if (user.username === '') {
    return deny({
      code: 'MissingIdentity',
      message: 'this call has no authenticated user; a template needs an author; log in and apply it again',
      status: 403,
    });
  }
  const patch = new PatchBuilder(object);
  const metadata = own(object, 'metadata');
  const name = generatedName(metadata);
  if (name !== undefined) patch.set(['metadata', 'name'], name);
  const author = {
    username: user.username,
    uid: user.uid,
    groups: [...user.groups],
    time: formatTime(ports.clock.now()),
  };
  return { patch: patch.set(['spec', 'author'], author).ops };
}

function withoutAuthor(spec: unknown): unknown {
  if (!isRecord(spec)) return spec;
  const { author: _, ...rest } = spec;
  return rest;
}

const invalidSpec = (message: string): Decision => deny({ code: 'InvalidObject', message, field: 'spec', status: 422 });

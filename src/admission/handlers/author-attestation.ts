import { isDeepStrictEqual } from 'node:util';
import type { TemplateKind } from '../../api/access/names.ts';
import type { TemplateVersion } from '../../api/access/template-spec.ts';
import { formatTime } from '../../kit/clock.ts';
import { copyJson, isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { allow, type Decision, deny, type Handler } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';
import { generatedName } from './generated-name.ts';

/**
 * Maximum size of a spec without its author: its characters, and 32 more for each value. `kubectl apply` stores at most 256 KiB, which is
 * usually below this limit. Templates contain whole pods, so the limit of requests would be too low.
 */
const MAX_SPEC = 1024 * 1024;

type Ports = Pick<AdmissionPorts, 'clock' | 'signAuthor'>;

/**
 * Mutating webhook of templates: writes and signs the caller as the author if the template is new, its spec changes, or the caller sets
 * another author. Otherwise, it keeps the author. The signature covers the spec of a new template, and the UID and next generation of an
 * updated one. A dry run gets no signature.
 */
export function attestAuthor(kind: TemplateKind, ports: Ports): Handler {
  return {
    decide(review) {
      const spec = own(review.object, 'spec');
      if (!isRecord(spec)) return invalidSpec('spec must be an object');
      if (review.operation === 'CREATE') return attestSpec(kind, review, spec, { spec }, ports);
      const version = versionAfter(review.oldObject);
      const before = own(review.oldObject, 'spec');
      const attested = own(before, 'author') ?? undefined;
      const claimed = own(spec, 'author') ?? undefined;
      if (!isDeepStrictEqual(withoutAuthor(spec), withoutAuthor(before))) {
        return attestSpec(kind, review, spec, version, ports);
      }
      // The spec does not change, so its size is not limited: without the webhook, a larger one may have been stored.
      if (isDeepStrictEqual(claimed, attested)) return allow;
      // Manifests omit the field. A caller that sets it to another value becomes the author.
      if (claimed !== undefined) return attest(kind, review, version, ports);
      return { patch: new PatchBuilder(review.object).set(['spec', 'author'], attested).ops };
    },
  };
}

/** Attests a new spec, within the limit of its size. */
function attestSpec(
  kind: TemplateKind,
  review: Review,
  spec: JsonObject,
  version: TemplateVersion,
  ports: Ports,
): Decision {
  const copy = copyJson(withoutAuthor(spec), MAX_SPEC);
  return 'problem' in copy
    ? invalidSpec(`spec ${copy.problem}; ${copy.tooLarge ? 'shorten' : 'correct'} it`)
    : attest(kind, review, version, ports);
}

function attest(kind: TemplateKind, review: Review, version: TemplateVersion, ports: Ports): Decision {
  const { object, user, namespace, dryRun } = review;
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
  // A dry run returns the object to the caller, who could store a signature in a template that bypasses this webhook.
  if (dryRun) return { patch: patch.set(['spec', 'author'], author).ops };
  const signature = ports.signAuthor({
    kind,
    namespace,
    name: name ?? textOf(own(metadata, 'name')),
    version,
    author,
  });
  if (signature === undefined) return keysUnavailable;
  return { patch: patch.set(['spec', 'author'], { ...author, signature }).ops };
}

/**
 * The version of the template after this update: its uid, and the next generation, because the API server increments it with each new spec.
 */
function versionAfter(oldObject: unknown): TemplateVersion {
  const before = own(oldObject, 'metadata');
  return { uid: textOf(own(before, 'uid')), generation: Number(own(before, 'generation')) + 1 };
}

function withoutAuthor(spec: unknown): unknown {
  if (!isRecord(spec)) return spec;
  const { author: _, ...rest } = spec;
  return rest;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const invalidSpec = (message: string): Decision => deny({ code: 'InvalidObject', message, field: 'spec', status: 422 });

const keysUnavailable = deny({
  code: 'SigningKeyUnavailable',
  message: 'this server has not read its signing keys yet; a template without a signature grants nothing; try again',
  status: 503,
});

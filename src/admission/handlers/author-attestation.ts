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

/** Size of a spec without its author, as `copyJson` weighs it. Templates contain whole pods. */
const MAX_SPEC = 1024 * 1024;

type Ports = Pick<AdmissionPorts, 'clock' | 'signAuthor'>;

/**
 * Mutating webhook of templates: signs the caller as the author of a new spec, or if the caller
 * sets another author. It signs the spec, or the UID and generation of an update; not in a dry run.
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
      // An unchanged spec has no limit: without the webhook, a larger one may have been stored.
      if (isDeepStrictEqual(claimed, attested)) return allow;
      // Manifests omit the field. A caller that sets it to another value becomes the author.
      if (claimed !== undefined) return attest(kind, review, version, ports);
      return { patch: new PatchBuilder(review.object).set(['spec', 'author'], attested).ops };
    },
  };
}

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
  // A dry run returns the object, whose signature the caller could store without this webhook.
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

/** The API server increments the generation with each new spec. */
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

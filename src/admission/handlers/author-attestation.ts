import { isDeepStrictEqual } from 'node:util';
import type { TemplateKind } from '../../api/access/names.ts';
import type { TemplateVersion } from '../../api/access/template-spec.ts';
import { formatTime } from '../../kit/clock.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { allow, type Decision, type Handler, refuse } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';
import { settledName } from './settled-name.ts';

type Ports = Pick<AdmissionPorts, 'clock' | 'sealAuthor'>;

/** Mutating webhook of the templates: says who wrote the spec, and signs that for the spec of a new one, else for the generation that it becomes. */
export function attestAuthor(kind: TemplateKind, ports: Ports): Handler {
  return {
    decide(review) {
      const spec = own(review.object, 'spec');
      if (!isRecord(spec)) {
        return refuse({ code: 'InvalidObject', message: 'spec must be an object', field: 'spec', status: 422 });
      }
      if (review.operation === 'CREATE') return stamp(kind, review, { spec }, ports);
      const version = versionAfter(review.oldObject);
      const before = own(review.oldObject, 'spec');
      const vouched = own(before, 'author') ?? undefined;
      const claimed = own(spec, 'author') ?? undefined;
      if (!isDeepStrictEqual(withoutAuthor(spec), withoutAuthor(before))) return stamp(kind, review, version, ports);
      if (isDeepStrictEqual(claimed, vouched)) return allow;
      // A manifest does not know the field; whoever writes something else into it wants to be the author.
      if (claimed !== undefined) return stamp(kind, review, version, ports);
      return { patch: new PatchBuilder(review.object).set(['spec', 'author'], vouched).ops };
    },
  };
}

function stamp(kind: TemplateKind, review: Review, version: TemplateVersion, ports: Ports): Decision {
  const { object, user, namespace, dryRun } = review;
  if (user.username === '') {
    return refuse({
      code: 'MissingIdentity',
      message:
        'somebody has to vouch for a template, and this call has no authenticated user; log in and apply it again',
      status: 403,
    });
  }
  const patch = new PatchBuilder(object);
  const metadata = own(object, 'metadata');
  const name = settledName(metadata);
  if (name !== undefined) patch.set(['metadata', 'name'], name);
  const author = {
    username: user.username,
    uid: user.uid,
    groups: [...user.groups],
    time: formatTime(ports.clock.now()),
  };
  // A signature in the caller's hands would be good for a template that passes us by.
  if (dryRun) return { patch: patch.set(['spec', 'author'], author).ops };
  const signature = ports.sealAuthor({
    kind,
    namespace,
    name: name ?? textOf(own(metadata, 'name')),
    version,
    author,
  });
  if (signature === undefined) return keysUnavailable;
  return { patch: patch.set(['spec', 'author'], { ...author, signature }).ops };
}

/** Every change of a spec makes one more generation. */
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

const keysUnavailable = refuse({
  code: 'SigningKeyUnavailable',
  message: 'this server has not read its signing keys yet, and a template that it cannot sign gives nothing; try again',
  status: 503,
});

import { isDeepStrictEqual } from 'node:util';
import { chooseDuration } from '../../access/policy/duration-choice.ts';
import type { LimitUse } from '../../access/policy/limits.ts';
import { explain, explanationLines, firstViolation } from '../../access/policy/policy.ts';
import {
  createRequestPolicy,
  isEligibleByGroup,
  type RequestInput,
  type TemplateState,
} from '../../access/policy/request-policy.ts';
import { updateRequestPolicy } from '../../access/policy/request-update-policy.ts';
import { accessOfRequest, type RequestKind, type RequestSpec } from '../../api/access/kinds.ts';
import { type Read, readBySchema } from '../../api/schema/read.ts';
import { own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { allow, type Decision, deny, type Handler, invalidSpec } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';

type Ports = Pick<AdmissionPorts, 'templateState' | 'alreadyHolds' | 'limitUses'>;

/** Validating webhook of requests: applies the request policy early, with an explanation. The controller applies it again before a grant. */
export function validateRequest(kind: RequestKind, ports: Ports): Handler {
  return {
    decide(review, signal) {
      switch (review.operation) {
        case 'CREATE':
          return validateNew(kind, review, ports, signal);
        case 'UPDATE':
          return validateChange(kind, review);
        default:
          // Any caller that RBAC allows to delete the request may revoke its access.
          return { details: templateOf(own(review.oldObject, 'spec')) };
      }
    },
  };
}

async function validateNew(kind: RequestKind, review: Review, ports: Ports, signal: AbortSignal): Promise<Decision> {
  const read = readSpec(kind, review.object);
  if (!read.ok) return invalidSpec(read.errors);
  const spec = read.value;
  const { namespace, user } = review;
  const templateKind = accessOfRequest(kind).template.resource.kind;
  const template = await ports.templateState(templateKind, namespace, spec.templateName, signal);
  const byGroup = template.found && isEligibleByGroup(user, template.spec.accessConfig.allowedGroups);
  const chosenTemplate = template.found && { kind: templateKind, name: spec.templateName, spec: template.spec };
  // Calls the API server only for callers whom no group makes eligible.
  const alreadyHolds =
    chosenTemplate &&
    !byGroup &&
    user.username !== '' &&
    (await ports.alreadyHolds(user, namespace, chosenTemplate, signal));
  const limits = limitUses(spec, review, template, ports);
  const input = inputOf(kind, 'CREATE', review, spec, { template, alreadyHolds, limits });
  const violation = firstViolation(createRequestPolicy, input);
  const details = { template: spec.templateName };
  // A dry run explains every check.
  const explanation = review.dryRun ? explanationLines(explain(createRequestPolicy, input)) : [];
  if (violation) return { ...deny(violation, details), warnings: explanation };
  return {
    details: { ...details, message: `eligible ${alreadyHolds ? 'by permissions already held' : 'by group'}` },
    ...(template.found ? { decidingGroups: template.spec.accessConfig.allowedGroups } : {}),
    warnings: [...durationWarnings(spec, template), ...explanation],
    opensAccess: true,
  };
}

function validateChange(kind: RequestKind, review: Review): Decision {
  // Metadata may change, even if the spec is unreadable: the finalizer must be removable.
  if (isDeepStrictEqual(own(review.object, 'spec'), own(review.oldObject, 'spec'))) {
    return { details: templateOf(own(review.object, 'spec')) };
  }
  const now = readSpec(kind, review.object);
  if (!now.ok) return invalidSpec(now.errors);
  const before = readSpec(kind, review.oldObject);
  if (!before.ok) {
    return deny({
      code: 'SpecImmutable',
      message: 'the spec of a request is immutable; delete the request and create another',
      field: 'spec',
      status: 422,
    });
  }
  const input = inputOf(kind, 'UPDATE', review, now.value, { template: { found: false }, alreadyHolds: false });
  const violation = firstViolation(updateRequestPolicy, { ...input, oldSpec: before.value });
  const details = { template: now.value.templateName };
  if (violation) return deny(violation, details);
  const revokes = now.value.revoked === true && before.value.revoked !== true;
  return { ...allow, details: revokes ? { ...details, message: 'revokes the access' } : details };
}

function inputOf(
  kind: RequestKind,
  operation: RequestInput['operation'],
  review: Review,
  spec: RequestSpec,
  facts: Pick<RequestInput, 'template' | 'alreadyHolds' | 'limits'>,
): RequestInput {
  const { namespace, name, user } = review;
  const caller = { username: user.username, uid: user.uid, groups: user.groups };
  return { operation, kind, namespace, name, templateName: spec.templateName, caller, spec, ...facts };
}

function limitUses(
  { templateName }: RequestSpec,
  { namespace, user }: Review,
  template: TemplateState,
  ports: Ports,
): readonly LimitUse[] {
  if (!template.found) return [];
  const { uid, spec } = template;
  const { maxGrants } = spec.accessConfig;
  return ports.limitUses({ user: user.username, namespace, template: { uid, name: templateName, maxGrants } });
}

function readSpec(kind: RequestKind, object: unknown): Read<RequestSpec> {
  return readBySchema<RequestSpec>(accessOfRequest(kind).request.structural.spec, own(object, 'spec'), 'spec');
}

/** Warns that the template limits the requested duration. */
function durationWarnings(spec: RequestSpec, template: TemplateState): string[] {
  if (!template.found) return [];
  const chosen = chooseDuration(spec.duration, template.spec.accessConfig);
  return 'clamped' in chosen && chosen.clamped ? [`spec.duration: ${chosen.message}`] : [];
}

function templateOf(spec: unknown): { template?: string } {
  const name = own(spec, 'templateName');
  return typeof name === 'string' ? { template: name } : {};
}

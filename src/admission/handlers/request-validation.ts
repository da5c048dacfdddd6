import { isDeepStrictEqual } from 'node:util';
import { askedFields } from '../../access/policy/asked-fields.ts';
import { chooseDuration } from '../../access/policy/duration-choice.ts';
import { decidingGroupsOf, durationBoundsOf } from '../../access/policy/emergency-policy.ts';
import type { LimitUse } from '../../access/policy/limits.ts';
import { setDeadlineMs } from '../../access/policy/pod-deadline.ts';
import { explain, firstViolation } from '../../access/policy/policy.ts';
import {
  createRequestPolicy,
  isEligibleByGroup,
  type RequestInput,
  type TemplateState,
} from '../../access/policy/request-policy.ts';
import { updateRequestPolicy } from '../../access/policy/request-update-policy.ts';
import { explanationLines, violationWarning } from '../../access/policy/warnings.ts';
import { accessOfRequest, type RequestKind, type RequestSpec } from '../../api/access/kinds.ts';
import { type Read, readBySchema } from '../../api/schema/read.ts';
import { durationText } from '../../kit/go-duration.ts';
import { own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { type Decision, deny, type Handler, invalidSpec } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';
import { validateRequesterChange } from './change-validation.ts';

type Ports = Pick<
  AdmissionPorts,
  'templateState' | 'alreadyHolds' | 'limitUses' | 'openAccess' | 'endOf' | 'overdueReview' | 'clock'
>;

/**
 * Validating webhook of requests. A dry run explains the rules in warnings. The controller checks
 * `grantPolicy` again before a grant.
 */
export function validateRequest(kind: RequestKind, ports: Ports): Handler {
  return {
    decide(review, signal) {
      switch (review.operation) {
        case 'CREATE':
          return validateNew(kind, review, ports, signal);
        case 'UPDATE':
          return validateChange(kind, review, ports, signal);
        default:
          // A deletion revokes the access. RBAC alone decides who may delete, so no rule applies.
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
  const decidingGroups = template.found ? decidingGroupsOf(spec, template.spec.accessConfig) : [];
  const byGroup = isEligibleByGroup(user, decidingGroups);
  const chosenTemplate = template.found && { kind: templateKind, name: spec.templateName, spec: template.spec };
  // A caller in an allowed group needs no SubjectAccessReviews.
  const alreadyHolds =
    chosenTemplate &&
    !byGroup &&
    !spec.emergency &&
    user.username !== '' &&
    (await ports.alreadyHolds(user, namespace, chosenTemplate, signal));
  const limits = limitUses(spec, review, template, ports);
  const askedAtMs = ports.clock.now();
  const overdueReview = spec.emergency
    ? ports.overdueReview(user, namespace, templateKind, spec.templateName)
    : undefined;
  const input = inputOf(kind, 'CREATE', review, spec, { template, alreadyHolds, limits, askedAtMs, overdueReview });
  const violation = firstViolation(createRequestPolicy, input);
  const details = detailsOf(spec, template);
  // The API server shows warnings to the caller: a dry run explains which rules it violates.
  const explanation = review.dryRun ? explanationLines(explain(createRequestPolicy, input)) : [];
  if (violation) return { ...deny(violation, details), warnings: explanation };
  return {
    details: { ...details, message: `eligible ${alreadyHolds ? 'by permissions already held' : 'by group'}` },
    decidingGroups,
    warnings: [...planWarnings(kind, template), ...durationWarnings(spec, template), ...explanation],
    opensAccess: true,
  };
}

async function validateChange(kind: RequestKind, review: Review, ports: Ports, signal: AbortSignal): Promise<Decision> {
  // Allow changes of metadata even if the spec is unreadable, so that the finalizer can be removed.
  if (isDeepStrictEqual(own(review.object, 'spec'), own(review.oldObject, 'spec'))) {
    return { details: templateOf(own(review.object, 'spec')) };
  }
  const now = readSpec(kind, review.object);
  if (!now.ok) return invalidSpec(now.errors);
  const before = readSpec(kind, review.oldObject);
  if (!before.ok) {
    const found = before.errors.map(({ field, message }) => `${field} ${message}`).join('; ');
    const message = `the stored spec is invalid: ${found}; an invalid spec cannot be changed; delete the request, which ends its access, and create another`;
    return deny({ code: 'SpecImmutable', message, field: 'spec', status: 422 }, templateOf(own(review.object, 'spec')));
  }
  // `updateRequestPolicy` does not read these.
  const facts = { template: { found: false }, alreadyHolds: false, askedAtMs: 0 } as const;
  const input = inputOf(kind, 'UPDATE', review, now.value, facts);
  const ended = ports.endOf(kind, review.oldObject);
  const violation = firstViolation(updateRequestPolicy, { ...input, oldSpec: before.value, ended });
  const details = { template: now.value.templateName };
  if (violation) return deny(violation, details);
  const change = { oldSpec: before.value, spec: now.value };
  const decision = await validateRequesterChange(kind, review, change, ports, signal);
  if (decision) return decision;
  const revokes = now.value.revoked === true && before.value.revoked !== true;
  if (!revokes) return { details };
  const { revokedReason: reason } = now.value;
  return {
    details: { ...details, message: 'revokes the access', ...(reason === undefined ? {} : { reason }) },
  };
}

/** All fields that the requester set, and the version of the template. */
function detailsOf(spec: RequestSpec, template: TemplateState): NonNullable<Decision['details']> {
  return {
    template: spec.templateName,
    ...(template.found ? { templateUid: template.uid, templateGeneration: template.generation } : {}),
    ...askedFields(spec),
  };
}

function inputOf(
  kind: RequestKind,
  operation: RequestInput['operation'],
  review: Review,
  spec: RequestSpec,
  facts: Pick<RequestInput, 'template' | 'alreadyHolds' | 'limits' | 'askedAtMs' | 'overdueReview'>,
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

/** By the last judgement of the leader, since when objects may have changed. */
function planWarnings(kind: RequestKind, template: TemplateState): string[] {
  const unplannable = template.found ? template.unplannable : undefined;
  if (!unplannable) return [];
  const opens = kind === 'ExecAccessRequest' && unplannable.code === 'InvalidAccessCommand';
  if (!opens) return [violationWarning(unplannable)];
  return [
    `access opens, but the server cannot write its command: ${unplannable.message}. Ask the author of the template to correct it`,
  ];
}

/** The template shortens the requested duration, or ends its pod earlier. */
function durationWarnings(spec: RequestSpec, template: TemplateState): string[] {
  if (!template.found) return [];
  const chosen = chooseDuration(spec.duration, durationBoundsOf(spec, template.spec.accessConfig));
  if ('code' in chosen) return [];
  const seconds = setDeadlineMs(template.spec) / 1000;
  if (seconds * 1000 < chosen.grantedMs) {
    const longest = durationText(BigInt(Math.round(seconds)) * 1_000_000_000n);
    return [
      `access lasts at most ${longest}, because the template sets activeDeadlineSeconds of its pod to ${seconds}`,
    ];
  }
  return chosen.clamped ? [`spec.duration: ${chosen.message}`] : [];
}

function templateOf(spec: unknown): { template?: string } {
  const name = own(spec, 'templateName');
  return typeof name === 'string' ? { template: name } : {};
}

import { chooseDuration } from '../access/policy/duration-choice.ts';
import { decidingGroupsOf, durationBoundsOf } from '../access/policy/emergency-policy.ts';
import { setDeadlineMs } from '../access/policy/pod-deadline.ts';
import { firstViolation, type Violation } from '../access/policy/policy.ts';
import { grantPolicy, type RequestInput } from '../access/policy/request-policy.ts';
import { votesNeeded } from '../access/policy/vote-count.ts';
import { accessOfTemplate, type RequestKind, type RequestSpec, type TemplateSpec } from '../api/access/kinds.ts';
import type { TemplateKind } from '../api/access/names.ts';
import { parseTime } from '../kit/clock.ts';
import { durationText, parseGoDuration } from '../kit/go-duration.ts';
import { listIn, own, strings } from '../kit/json-value.ts';
import { type JournalLine, textIn } from './journal.ts';

/** The changed template, by which recorded requests are decided again. Its spec has the defaults of the API server. */
export interface ReviewedTemplate {
  readonly kind: TemplateKind;
  readonly namespace: string;
  readonly name: string;
  readonly spec: TemplateSpec;
}

/** One difference that the changed template would make for one recorded request. */
export interface Difference {
  readonly change: 'gains' | 'loses' | 'not decidable';
  /** What the requester gains or loses, or why the line does not allow an answer. */
  readonly what: string;
}

/** The grant of a recorded request. */
export interface RecordedGrant {
  readonly durationMs: number;
  /** Number of votes that approved it. */
  readonly votes: number;
  /** The shortest duration to which a vote limited the grant, milliseconds; undefined if no vote set one. */
  readonly maxMs: number | undefined;
}

/**
 * Maximum difference of two durations that counts as none, milliseconds: the grant starts shortly before the server writes its line, and
 * ends at a whole second.
 */
const TOLERANCE_MS = 10_000;

/**
 * Codes of denials that depend only on the template, the request, and its requester. Other denials can depend on facts that the journal
 * does not have.
 */
const templateCodes: readonly string[] = [
  'NotEligible',
  'EmergencyNotAllowed',
  'InvalidDuration',
  'ReasonMissing',
  'ReasonMismatch',
  'InvalidStart',
  'InvalidTargetPod',
  'SystemGroup',
  'GrantToGroups',
  'GatewayToGroups',
  'InvalidSession',
  'InvalidPattern',
  'InvalidWindow',
];

/** Whether a line is the decision of the webhook about a new request through the template. Excludes dry runs, which create no request. */
export const isRequestLine = ({ record }: JournalLine, template: ReviewedTemplate): boolean =>
  textIn(record, 'event') === 'admission' &&
  textIn(record, 'what.operation') === 'CREATE' &&
  own(record, 'dryRun') !== true &&
  isAbout(record, template);

/** Whether a line records the grant of a request through the template. */
export const isGrantLine = ({ record }: JournalLine, template: ReviewedTemplate): boolean =>
  textIn(record, 'event') === 'grant' && textIn(record, 'verdict') === 'granted' && isAbout(record, template);

const isAbout = (record: object, { kind, namespace, name }: ReviewedTemplate): boolean =>
  textIn(record, 'what.kind') === requestKindOf(kind) &&
  textIn(record, 'what.namespace') === namespace &&
  textIn(record, 'template') === name;

const requestKindOf = (kind: TemplateKind): RequestKind => accessOfTemplate(kind).request.resource.kind;

/** The grant that a line records; undefined if the line does not contain the end of the grant. */
export function grantIn({ atMs, record }: JournalLine): RecordedGrant | undefined {
  const endMs = parseTime(textIn(record, 'expiresAt'));
  if (endMs === undefined) return undefined;
  const votes = listIn(record, 'votes');
  const maxima = votes.flatMap((vote) => {
    const parsed = parseGoDuration(textIn(vote, 'max'));
    return 'ns' in parsed ? [Number(parsed.ns / 1_000_000n)] : [];
  });
  return {
    durationMs: endMs - atMs,
    votes: votes.length,
    maxMs: maxima.length === 0 ? undefined : Math.min(...maxima),
  };
}

/**
 * Decides the recorded request by `grantPolicy` with the changed template, and returns the differences; empty if there is none. Decides
 * twice, because the journal lacks facts: once as if they made the requester eligible, and once as if they did not. If the results differ,
 * the request may not be decidable.
 */
export function replay(line: JournalLine, template: ReviewedTemplate, grant?: RecordedGrant): Difference[] {
  const { record } = line;
  const before = textIn(record, 'verdict');
  if (textIn(record, 'templateUid') === '')
    return undecidable('the line names no version of the template: the server found no template');
  const spec = specIn(record, template.name);
  const [violationIfIneligible, violationIfEligible] = [false, true].map((assumeEligible) =>
    decide(line, template, spec, assumeEligible),
  );
  const wasAllowed = before === 'allowed';
  if (!violationIfIneligible && !violationIfEligible) {
    const code = textIn(record, 'code');
    if (wasAllowed) return [...durationDifference(template, spec, grant), ...approvalDifference(template, spec, grant)];
    if (!templateCodes.includes(code))
      return undecidable(`it was denied with ${code}, which can depend on facts that the journal does not have`);
    return [{ change: 'gains', what: gainText(template, spec) }];
  }
  if (violationIfIneligible && violationIfEligible)
    return wasAllowed ? [{ change: 'loses', what: `access: ${violationText(violationIfIneligible)}` }] : [];
  // The result depends on groups or permissions that the line may not record. If the line records all groups and does not say that the
  // person was eligible by permissions, assume that the person held none. The request is then denied with the changed template, so the
  // person can only lose access.
  const wasEligibleByPermissions = textIn(record, 'message').includes('already held');
  const groupsAreCut = own(own(record, 'who'), 'groupCount') !== undefined;
  if (groupsAreCut) return undecidable('the line records only the first groups of the person');
  if (wasEligibleByPermissions)
    return undecidable('the person held the permissions of the template at that time; the line does not list them');
  return wasAllowed && violationIfIneligible
    ? [{ change: 'loses', what: `access: ${violationText(violationIfIneligible)}` }]
    : [];
}

const undecidable = (what: string): Difference[] => [{ change: 'not decidable', what }];
const violationText = ({ code, message }: Violation): string => `${code}: ${message}`;

/**
 * The first violation of the recorded request; undefined if there is none. `assumeEligible`: assume that the facts that the line lacks make
 * the requester eligible.
 */
function decide(
  { atMs, record }: JournalLine,
  { kind, namespace, name, spec: templateSpec }: ReviewedTemplate,
  spec: RequestSpec,
  assumeEligible: boolean,
): Violation | undefined {
  const groups = strings(own(own(record, 'who'), 'groups'));
  const isCut = own(own(record, 'who'), 'groupCount') !== undefined;
  const assumedGroups = assumeEligible && isCut ? decidingGroupsOf(spec, templateSpec.accessConfig) : [];
  const input: RequestInput = {
    operation: 'CREATE',
    kind: requestKindOf(kind),
    namespace,
    name: textIn(record, 'what.name'),
    templateName: name,
    caller: {
      username: textIn(record, 'who.user'),
      uid: textIn(record, 'who.uid'),
      groups: [...groups, ...assumedGroups],
    },
    spec,
    askedAtMs: atMs,
    template: {
      found: true,
      uid: '',
      generation: 0,
      spec: templateSpec,
      // The conditions of the template at that time are not known.
      ready: undefined,
      observedGeneration: undefined,
    },
    alreadyHolds: assumeEligible,
  };
  return firstViolation(grantPolicy, input);
}

/** The spec of the request, from its line. */
function specIn(record: object, templateName: string): RequestSpec {
  const text = (field: string): object => {
    const value = own(record, field === 'targetPod' ? 'target' : field);
    return typeof value === 'string' ? { [field]: value } : {};
  };
  return {
    templateName,
    ...text('duration'),
    ...text('targetPod'),
    ...text('startAt'),
    ...text('reason'),
    ...(own(record, 'emergency') === true ? { emergency: true } : {}),
  } as RequestSpec;
}

/** The duration that the template would grant, milliseconds; undefined if the requested duration or one in the template is invalid. */
function durationMs({ spec: template }: ReviewedTemplate, spec: RequestSpec): number | undefined {
  const chosen = chooseDuration(spec.duration, durationBoundsOf(spec, template.accessConfig));
  return 'code' in chosen ? undefined : Math.min(chosen.grantedMs, setDeadlineMs(template));
}

const approvalsNeeded = ({ spec: { accessConfig } }: ReviewedTemplate, spec: RequestSpec): number =>
  spec.emergency ? 0 : votesNeeded(accessConfig.approvals?.all ?? []);

function gainText(template: ReviewedTemplate, spec: RequestSpec): string {
  const needed = approvalsNeeded(template, spec);
  return `access for ${timeText(durationMs(template, spec) ?? 0)}${needed === 0 ? '' : ` after ${approvals(needed)}`}`;
}

function durationDifference(template: ReviewedTemplate, spec: RequestSpec, grant?: RecordedGrant): Difference[] {
  const allowedMs = durationMs(template, spec);
  if (!grant || allowedMs === undefined) return [];
  const nowMs = Math.min(allowedMs, grant.maxMs ?? Number.POSITIVE_INFINITY);
  if (Math.abs(nowMs - grant.durationMs) <= TOLERANCE_MS) return [];
  const unit = grant.durationMs < 120_000 ? 1000 : 60_000;
  const wasMs = Math.round(grant.durationMs / unit) * unit;
  return [
    {
      change: nowMs > grant.durationMs ? 'gains' : 'loses',
      what: `time: ${timeText(nowMs)} instead of ${timeText(wasMs)}`,
    },
  ];
}

function approvalDifference(template: ReviewedTemplate, spec: RequestSpec, grant?: RecordedGrant): Difference[] {
  const needed = approvalsNeeded(template, spec);
  if (!grant || spec.emergency) return [];
  if (needed > grant.votes)
    return [{ change: 'loses', what: `access with ${approvals(grant.votes)}: the request would need ${needed}` }];
  return needed < grant.votes
    ? [{ change: 'gains', what: `access with ${approvals(needed)}: the request had ${grant.votes}` }]
    : [];
}

const approvals = (count: number): string =>
  count === 0 ? 'no approval' : `${count} ${count === 1 ? 'approval' : 'approvals'}`;
const timeText = (ms: number): string => durationText(BigInt(Math.round(ms)) * 1_000_000n);

import { addedExtensions, type ChangeInput, changePolicy, setsClaimed } from '../../access/policy/change-policy.ts';
import { chooseExtension } from '../../access/policy/extension-choice.ts';
import { explain, firstViolation } from '../../access/policy/policy.ts';
import { explanationLines } from '../../access/policy/warnings.ts';
import { accessOfRequest, type RequestKind, type RequestSpec } from '../../api/access/kinds.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { type Decision, deny } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';

export type ChangePorts = Pick<AdmissionPorts, 'templateState' | 'openAccess' | 'clock'>;

/** Decides on a claim or an extension by `changePolicy`; undefined for any other update. */
export async function validateRequesterChange(
  kind: RequestKind,
  review: Review,
  { oldSpec, spec }: { readonly oldSpec: RequestSpec; readonly spec: RequestSpec },
  ports: ChangePorts,
  signal: AbortSignal,
): Promise<Decision | undefined> {
  const change = { oldSpec, spec };
  if (!setsClaimed(change) && addedExtensions(change) <= 0) return undefined;
  const { namespace, user, oldObject } = review;
  const templateKind = accessOfRequest(kind).template.resource.kind;
  const template = await ports.templateState(templateKind, namespace, spec.templateName, signal);
  const caller = { username: user.username, uid: user.uid, groups: user.groups };
  const approval = own(own(oldObject, 'status'), 'approval');
  // The leader may not have written yet that the time for the claim is over.
  const isOver = own(approval, 'state') === 'Claimable' && !(dueMsOf(approval) > ports.clock.now());
  const approvalState = isOver ? 'TimedOut' : own(approval, 'state');
  const input: ChangeInput = {
    ...change,
    caller,
    template,
    approvalState: typeof approvalState === 'string' ? approvalState : undefined,
    access: ports.openAccess(kind, oldObject),
  };
  const reason = addedExtension(input)?.reason;
  const details = {
    template: spec.templateName,
    ...(template.found ? { templateUid: template.uid, templateGeneration: template.generation } : {}),
    ...(reason === undefined ? {} : { reason }),
  };
  const explanation = review.dryRun ? explanationLines(explain(changePolicy, input)) : [];
  const violation = firstViolation(changePolicy, input);
  if (violation) return { ...deny(violation, details), warnings: explanation };
  return {
    details: { ...details, message: describeChange(input) },
    warnings: [...clampWarnings(input), ...explanation],
    opensAccess: true,
  };
}

/** Epoch ms; NaN without one. */
const dueMsOf = (approval: unknown): number => parseTime(String(own(approval, 'due') ?? '')) ?? Number.NaN;

function addedExtension(input: Pick<ChangeInput, 'oldSpec' | 'spec'>) {
  return addedExtensions(input) > 0 ? input.spec.extensions?.at(-1) : undefined;
}

function describeChange(input: ChangeInput): string {
  const extension = addedExtension(input);
  return [
    ...(setsClaimed(input) ? ['claims the access'] : []),
    ...(extension ? [`asks to extend the access by ${extension.by}`] : []),
  ].join(', ');
}

function clampWarnings(input: ChangeInput): string[] {
  const { template, access } = input;
  const requested = addedExtension(input);
  if (!requested || !access || !template.found) return [];
  const { approvals, extension } = template.spec.accessConfig;
  const chosen = chooseExtension(requested, extension, access);
  if ('code' in chosen || chosen.shortenedBy === undefined) return [];
  const ifApproved = approvals && extension?.approvals !== 'None' ? 'if it is approved, ' : '';
  const why = chosen.shortenedBy === 'pod' ? 'the pod stops then' : `the template allows ${extension?.total} in total`;
  return [
    `spec.extensions[${access.decided}].by: requested ${requested.by}; ${ifApproved}access ends at ${formatTime(chosen.endMs)}, because ${why}`,
  ];
}

import type { CodeTable } from '../code-table.ts';

/** Denials of requests, by the webhook or by the leader. */
export const requestCodes = {
  NotEligible: {
    audience: 'requester',
    meaning:
      'The requester is in none of the allowed groups of the template, and does not hold the permissions that it hands out.',
    remedy: 'Ask for membership in one of the groups that the message names, or use another template.',
  },
  MissingIdentity: {
    audience: 'requester',
    meaning: 'The caller is anonymous, or the mutating webhook did not write who they are.',
    remedy: 'Log in. An operator checks that the mutating webhook is registered.',
  },
  // In the codes, a stamp is the signature in `spec.requester`, or in a vote or an extension.
  StampMissing: {
    audience: 'requester',
    meaning:
      'The request, vote, claim, or extension has no signature. The API server did not call the webhooks, for example because the chart value `namespaces` does not list the namespace, or the CRDs are older than the server.',
    remedy:
      'An operator applies the CRDs and the webhook configurations, or adds the namespace to `namespaces`. Then create the request or vote, claim, or extend again.',
  },
  StampInvalid: {
    audience: 'operator',
    meaning:
      'The signature of a request, vote, or extension does not match: another client wrote, copied, or changed it, or the server no longer has its key. For a vote, also: it was signed more than 10 s before, or 2 s after, its creation.',
    remedy:
      'Find out which client wrote it. Create a new request or extension. A voter cannot repeat a vote: another approver votes, or the requester creates a new request. If those votes are ignored too, synchronize the clocks.',
  },
  StampExpired: {
    audience: 'operator',
    meaning: 'The signature in `spec.requester` is more than 10 s older, or 2 s newer, than the request.',
    remedy: 'Synchronize the clocks, and create a new request. If the clocks agree, a client copied the signature.',
  },
  StampReplayed: {
    audience: 'operator',
    meaning: 'An earlier request, which was deleted, has the same signature in `spec.requester`.',
    remedy: 'Find out which client created the request from a copy.',
  },
  TemplateNotFound: {
    audience: 'requester',
    meaning: 'The namespace of the request has no such template, or the template violates its schema.',
    remedy: 'Name an existing template, or ask its author to correct it.',
  },
  TemplateNotReady: {
    audience: 'requester',
    meaning: 'A condition of the template other than `AccessPlanValid` is False.',
    remedy: 'Ask the person whom the message names to correct the cause. If the message names no one, try again later.',
  },
  InvalidDuration: {
    audience: 'requester',
    meaning: 'A duration is invalid, is out of bounds, or a default exceeds the maximum.',
    remedy: 'Write a Go duration from 1s up, such as `30m`.',
  },
  LimitReached: {
    audience: 'requester',
    meaning: 'The user, the namespace, or the template has as many open grants as its limit allows.',
    remedy: 'Revoke a grant, or wait until the time that the message names. Then create a new request.',
  },
  InvalidTargetPod: {
    audience: 'requester',
    meaning: '`spec.targetPod` is not the name of a running pod of the workload.',
    remedy:
      'Name a running pod of the workload, or omit `spec.targetPod`. An approved request for a pod of a StatefulSet waits for that pod.',
  },
  NoRunningPod: {
    audience: 'requester',
    meaning: 'The workload controls no running pod.',
    remedy:
      'Wait until the workload has a running pod, then create a new request. An approved request waits for a running pod.',
  },
  SpecImmutable: {
    audience: 'requester',
    meaning: 'The spec of a request cannot change, except to revoke, claim, or extend the access.',
    remedy: 'To extend open access: `drawbridge extend`. For all else, create a new request.',
  },
  VoteDenied: {
    audience: 'requester',
    meaning: 'An approver denied the request.',
    remedy: 'Ask the approver whom the message names. Create a new request once the reason no longer applies.',
  },
  NotApproved: {
    audience: 'requester',
    meaning: 'The approvals that the template asks for did not come within `pendingFor`.',
    remedy: 'Create a new request, and tell the approvers.',
  },
  NotClaimed: {
    audience: 'requester',
    meaning: 'The request was approved, but the requester did not set `spec.claimed` within `claimWithin`.',
    remedy: 'Create a new request, and begin its access in time with `drawbridge start NAME`.',
  },
  NotExtendable: {
    audience: 'requester',
    meaning:
      'The template allows no extension, or no more; or the access is emergency access, or its pod stops by its `activeDeadlineSeconds`.',
    remedy: 'Create a new request.',
  },
  WrongState: {
    audience: 'requester',
    meaning: 'The request is not in the state that an extension, a claim, or a revocation needs.',
    remedy: 'Wait for the state that the message names. If the request has ended, create a new one.',
  },
  InvalidRequest: {
    audience: 'requester',
    meaning:
      'The template or the server does not allow the value of a field of the request, or allows the field only later.',
    remedy: 'Write what the message allows, or omit the field that it names.',
  },
  NotRequester: {
    audience: 'requester',
    meaning: 'A user other than the requester tried to claim or extend the access.',
    remedy: 'Ask the requester to claim or extend it.',
  },
  EmergencyNotAllowed: {
    audience: 'requester',
    meaning:
      'The template allows no emergency access, the requester is in none of its `emergency.groups`, or the request also has `startAt`.',
    remedy: 'Do what the message says, or omit `spec.emergency` and wait for approvals.',
  },
  ReviewOverdue: {
    audience: 'requester',
    meaning: 'An earlier emergency of the requester through this template was not reviewed in time.',
    remedy: 'Ask another person to create an `AccessVote` about `Review` for the request that the message names.',
  },
  Emergency: {
    audience: 'operator',
    meaning: 'Emergency access opened without approvals. This is not a denial.',
    remedy: 'Review it: create an `AccessVote` about `Review`.',
  },
  IdentityForged: {
    audience: 'anyone',
    meaning: '`spec.requester`, `spec.voter`, or `spec.author` is not the caller.',
    remedy: 'Omit the field; the webhook sets it. If you omitted it, try again once the webhooks answer.',
  },
  ForeignHold: {
    audience: 'requester',
    meaning: 'The object has a finalizer, owner, label, or annotation that it may not have.',
    remedy: 'Omit the metadata that the message names.',
  },
  NamespaceClosed: {
    audience: 'author',
    meaning: 'The server never opens access in `kube-system` or in the namespace of drawbridge.',
    remedy: 'Move the workload and the template to another namespace.',
  },
  TooLate: {
    audience: 'requester',
    meaning: 'The granted time passed before the server could open access.',
    remedy: 'Create a new request. An operator finds the cause of the delay in the log.',
  },
  PlanChanged: {
    audience: 'requester',
    meaning: 'The template, an object that it uses, or the server changed after the decision, before access opened.',
    remedy: 'Create a new request.',
  },
  NameCollision: {
    audience: 'operator',
    meaning: 'An object with the name of the Pod, Role, or RoleBinding exists, for something else.',
    remedy: 'Find out which client created it, and delete it.',
  },
  ResourceRefused: {
    audience: 'anyone',
    meaning:
      'The API server rejected the Pod, Role, or RoleBinding of a grant, for example because of a quota, Pod Security, or a webhook.',
    remedy: 'Do what the message says.',
  },
} as const satisfies CodeTable;

/** Denials and Events of calls that connect to a pod. */
export const podCodes = {
  NoGrant: {
    audience: 'requester',
    meaning: 'No open grant of the caller allows the call: the grant has ended, or was given to another user.',
    remedy: 'Create a request of your own, and wait until it is ready.',
  },
  UseGateway: {
    audience: 'requester',
    meaning: 'The grant of the access pod lets its requester enter only through the gateway.',
    remedy: 'Run `kubectl drawbridge exec NAME -n NAMESPACE` or, for other calls, `kubectl drawbridge use`.',
  },
  NoGatewayGrant: {
    audience: 'operator',
    meaning: 'The gateway tried to enter a pod that no open grant with `session.via: Gateway` opens.',
    remedy: 'If a grant has just ended, do nothing. Otherwise as for `TokenMisused`.',
  },
  PodNotFound: { audience: 'anyone', meaning: 'The pod does not exist.', remedy: 'Correct the name.' },
  BreakGlass: {
    audience: 'operator',
    meaning: 'A member of the break-glass group connected to an access pod without a grant. This is not a denial.',
    remedy: 'Ask the member for the reason.',
  },
} as const satisfies CodeTable;

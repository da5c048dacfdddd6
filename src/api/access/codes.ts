import type { CodeTable } from '../code-table.ts';

/** Denials of requests, by the webhook or by the leader. */
export const requestCodes = {
  NotEligible: {
    audience: 'requester',
    meaning: 'The requester is in no allowed group of the template, and lacks the permissions that it hands out.',
    remedy: 'Ask to join a group that the message names, or use another template.',
  },
  MissingIdentity: {
    audience: 'requester',
    meaning:
      'The caller is anonymous; or the webhook did not write who asks or votes, for example because the chart value `namespaces` lacks the namespace.',
    remedy: 'Log in. Otherwise, an operator adds the namespace, or checks that the webhooks are registered.',
  },
  PoliciesMissing: {
    audience: 'operator',
    meaning:
      'The request, its extension, the vote about a review, or the version of the template is older than the last proof that the [admission policies](admission-policies.md#while-they-are-not-in-force) are in force. Until there is one, it waits.',
    remedy:
      'Read `/readyz` of the leader, which names the policy, and run `helm upgrade`. 40 s later, create a new request, vote again, or change the template.',
  },
  TemplateNotFound: {
    audience: 'requester',
    meaning: 'The namespace has no such template, or the template violates its schema.',
    remedy: 'Name an existing template, or ask its author to correct it.',
  },
  TemplateNotReady: {
    audience: 'requester',
    meaning: 'A condition of the template other than `AccessPlanValid` is False.',
    remedy: 'Ask the person whom the message names to correct the cause, or try again later.',
  },
  InvalidDuration: {
    audience: 'requester',
    meaning: 'A duration is invalid or out of bounds, or a default exceeds the maximum.',
    remedy: 'Write a Go duration from 1s up, such as `30m`.',
  },
  LimitReached: {
    audience: 'requester',
    meaning: 'The user, the namespace, or the template has as many open grants as allowed.',
    remedy: 'Revoke a grant, or create a new request at the time that the message names.',
  },
  InvalidTargetPod: {
    audience: 'requester',
    meaning: '`spec.targetPod` names no running pod of the workload.',
    remedy:
      'Name a running pod of the workload, or omit `spec.targetPod`. An approved request for a pod of a StatefulSet waits for it.',
  },
  NoRunningPod: {
    audience: 'requester',
    meaning: 'The workload controls no running pod.',
    remedy: 'Create a new request once the workload has a running pod. An approved request waits.',
  },
  SpecImmutable: {
    audience: 'requester',
    meaning: 'The spec cannot change, except to revoke, claim, or extend the access.',
    remedy: 'To extend open access: `drawbridge extend`. Otherwise, create a new request.',
  },
  VoteDenied: {
    audience: 'requester',
    meaning: 'An approver denied the request.',
    remedy: 'Ask the approver whom the message names. Create a new request once the reason no longer applies.',
  },
  NotApproved: {
    audience: 'requester',
    meaning: 'The approvals did not come within `pendingFor`.',
    remedy: 'Create a new request, and tell the approvers.',
  },
  NotClaimed: {
    audience: 'requester',
    meaning: 'The requester did not claim the approved access within `claimWithin`.',
    remedy: 'Create a new request, and run `drawbridge claim NAME` in time.',
  },
  NotExtendable: {
    audience: 'requester',
    meaning:
      'The template allows no extension, or no more; or the access is emergency access, or its pod stops by `activeDeadlineSeconds`.',
    remedy: 'Create a new request.',
  },
  WrongState: {
    audience: 'requester',
    meaning: 'The request is not in the state that an extension, claim, or revocation needs.',
    remedy: 'Wait for the state that the message names. If the request has ended, create a new one.',
  },
  InvalidRequest: {
    audience: 'requester',
    meaning: 'The template or drawbridge does not allow a value of the request, or not yet.',
    remedy: 'Write what the message allows, or omit the field that it names.',
  },
  NotRequester: {
    audience: 'requester',
    meaning: 'Another user tried to claim or extend the access.',
    remedy: 'Ask the requester to claim or extend it.',
  },
  EmergencyNotAllowed: {
    audience: 'requester',
    meaning:
      'The template allows no emergency access, the requester is in none of its `emergency.groups`, or the request has `startAt`.',
    remedy: 'Do what the message says, or omit `spec.emergency` and wait for approvals.',
  },
  ReviewOverdue: {
    audience: 'requester',
    meaning: 'An emergency of the requester through this template was not reviewed in time.',
    remedy: 'Ask another person to create an `AccessVote` about `Review` for the request that the message names.',
  },
  Emergency: {
    audience: 'operator',
    meaning: 'Not a denial: emergency access opened without approvals.',
    remedy: 'Review it: create an `AccessVote` about `Review`.',
  },
  IdentityForged: {
    audience: 'anyone',
    meaning: '`spec.requester`, `spec.voter`, or `spec.author` is not the caller.',
    remedy: 'Omit it; the webhook sets it. If you did not set it, try again once the webhooks answer.',
  },
  ForeignHold: {
    audience: 'requester',
    meaning: 'The object has a finalizer, owner, label, or annotation that it may not have.',
    remedy: 'Omit what the message names.',
  },
  NamespaceClosed: {
    audience: 'author',
    meaning: 'drawbridge opens no access in `kube-system` or in its own namespace.',
    remedy: 'Move the workload and the template to another namespace.',
  },
  TooLate: {
    audience: 'requester',
    meaning: 'The granted time passed before drawbridge could open access.',
    remedy: 'Create a new request. drawbridge’s log says why.',
  },
  PlanChanged: {
    audience: 'requester',
    meaning: 'The template, an object that it uses, or drawbridge changed between decision and opening.',
    remedy: 'Create a new request.',
  },
  NameCollision: {
    audience: 'operator',
    meaning: 'Another object has the name of the Pod, Role, or RoleBinding.',
    remedy: 'Find out which client created it, and delete it.',
  },
  ResourceRefused: {
    audience: 'anyone',
    meaning:
      'The API server rejects the Pod, Role, or RoleBinding, or its deletion, for example by RBAC, a quota, Pod Security, or a webhook.',
    remedy: 'Do what the message says.',
  },
} as const satisfies CodeTable;

/** Denials and Events of calls that connect to a pod. */
export const podCodes = {
  NoGrant: {
    audience: 'requester',
    meaning: 'No open grant of the caller allows the call: it has ended, or is that of another user.',
    remedy: 'Create your own request, and wait until it is open.',
  },
  UseGateway: {
    audience: 'requester',
    meaning: 'The grant lets its requester enter the access pod only through the gateway.',
    remedy: 'Run `kubectl drawbridge exec NAME -n NAMESPACE` or, for other calls, `kubectl drawbridge use`.',
  },
  NoGatewayGrant: {
    audience: 'operator',
    meaning: 'The gateway tried to enter a pod that no open Gateway grant opens.',
    remedy: 'If a grant has just ended, do nothing. Otherwise as for `TokenMisused`.',
  },
  PodNotFound: { audience: 'anyone', meaning: 'The pod does not exist.', remedy: 'Correct the name.' },
  BreakGlass: {
    audience: 'operator',
    meaning: 'Not a denial: a member of the break-glass group connected to an access pod without a grant.',
    remedy: 'Ask the member for the reason.',
  },
} as const satisfies CodeTable;

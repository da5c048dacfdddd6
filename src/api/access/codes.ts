import type { CodeTable } from '../code-table.ts';

/** Denials of requests, by the webhook or by the leader. */
export const requestCodes = {
  NotEligible: {
    audience: 'requester',
    meaning:
      'The requester is in none of the allowed groups of the template, and does not hold the permissions that it hands out.',
    remedy:
      'Ask for membership in one of the groups that the message names, or ask the author of the template to allow one of your groups. Or use another template.',
  },
  MissingIdentity: {
    audience: 'requester',
    meaning:
      'The caller is anonymous, or the mutating webhook did not write the requester, the author, the voter, or `kubeconfigSetBy`.',
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
    remedy:
      'Create a request that names an existing template. If the template violates its schema, first ask its author to correct it.',
  },
  TemplateNotReady: {
    audience: 'requester',
    meaning: 'A condition of the template other than `AccessPlanValid` is False.',
    remedy: 'Ask the person whom the message names to correct the cause. If the message names no one, try again later.',
  },
  InvalidDuration: {
    audience: 'requester',
    meaning: 'A duration is not a Go duration, is out of bounds, or a default exceeds the maximum.',
    remedy: 'Write a Go duration from 1s up, such as `30m`. In a template: default ≤ maximum ≤ ten years.',
  },
  LimitReached: {
    audience: 'requester',
    meaning: 'The user, the namespace, or the template has as many open grants as its limit allows.',
    remedy:
      'Revoke a grant, or wait until the time that the message names, or longer if a holder extends access. Then create a new request.',
  },
  InvalidTargetPod: {
    audience: 'requester',
    meaning:
      '`spec.targetPod` is not a valid name, its pod is not running, or the workload of the template does not control the pod.',
    remedy:
      'Create a request that names a running pod of the workload, or omit `spec.targetPod`. An approved request for a pod of a StatefulSet waits for that pod.',
  },
  NoRunningPod: {
    audience: 'requester',
    meaning: 'The workload controls no running pod.',
    remedy:
      'Wait until the workload has a running pod, then create a new request. An approved request waits for a running pod.',
  },
  RequesterImmutable: {
    audience: 'requester',
    meaning: '`spec.requester` of a request cannot change.',
    remedy: 'Delete the request and create a new one.',
  },
  SpecImmutable: {
    audience: 'requester',
    meaning:
      'The spec of a request cannot change, except that a user who can update the request may revoke the access, and the requester may claim and extend it.',
    remedy:
      'To extend open access, if the template allows extensions: `drawbridge extend`. For all else, create a new request.',
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
      'The template has no `extension`, the access is emergency access, or the pod stops by its `activeDeadlineSeconds`.',
    remedy: 'Create a new request.',
  },
  TooManyExtensions: {
    audience: 'requester',
    meaning: 'Access was extended as often as the template allows.',
    remedy: 'Create a new request.',
  },
  TotalReached: {
    audience: 'requester',
    meaning: 'Access already lasts as long as the template allows with all extensions.',
    remedy: 'Create a new request.',
  },
  AccessNotOpen: {
    audience: 'requester',
    meaning:
      'An extension was asked for before the access was granted, or after it ended, or access ended before the server decided it. Or a request was claimed or revoked after its end.',
    remedy:
      'To extend access, wait for the grant. If the access has ended, nothing is left to revoke or extend; for new access, create a new request.',
  },
  ExtensionPending: {
    audience: 'requester',
    meaning: 'An update adds more than one extension, or the previous one is not decided yet.',
    remedy: 'Add one extension, and the next when `status.extensions` shows the decision.',
  },
  NotClaimable: {
    audience: 'requester',
    meaning:
      'The template has no `claimWithin`, or `status.approval.state` is not `Claimable`: the request waits for something else, has begun its access, or has ended.',
    remedy: 'Set `spec.claimed` while the state is `Claimable`. Without `claimWithin`, omit `spec.claimed`.',
  },
  TooEarly: {
    audience: 'requester',
    meaning:
      'A new request sets a field that can be set only later: `claimed`, `claimSignature`, `extensions`, or `revokedReason`.',
    remedy: 'Omit the field. If you copied a request, remove these fields from the copy.',
  },
  NotRequester: {
    audience: 'requester',
    meaning: 'A user other than the requester tried to claim or extend the access.',
    remedy: 'Ask the requester to claim or extend it.',
  },
  ReasonMissing: {
    audience: 'requester',
    meaning: '`spec.reason` is missing or too short. The template requires a reason, or the request is an emergency.',
    remedy: 'Write in `spec.reason` what the message asks for.',
  },
  ReasonMismatch: {
    audience: 'requester',
    meaning: '`spec.reason` does not match the pattern of the template.',
    remedy: 'Write what the message asks for, for example the key of a ticket.',
  },
  InvalidStart: {
    audience: 'requester',
    meaning: '`spec.startAt` has passed, or is a time at which the template does not let access begin.',
    remedy: 'Write a time that the message allows, or omit `spec.startAt`.',
  },
  EmergencyNotAllowed: {
    audience: 'requester',
    meaning:
      'The template allows no emergency access, the requester is in none of its `emergency.groups`, or the request also has `startAt`.',
    remedy:
      'Omit the field that the message names, ask for membership in one of the groups that it names, or name another template. Without `spec.emergency`, the request needs one of `allowedGroups`, and waits for the approvals of the template, if it has any.',
  },
  ReviewOverdue: {
    audience: 'requester',
    meaning: 'No other person reviewed an earlier emergency access of the requester through this template in time.',
    remedy:
      'Ask another person who may approve to create an `AccessVote` about `Review` for the request that the message names.',
  },
  Emergency: {
    audience: 'operator',
    meaning: 'Emergency access opened without approvals. This is not a denial.',
    remedy: 'Review it: create an `AccessVote` about `Review`.',
  },
  AlreadyRevoked: {
    audience: 'requester',
    meaning: 'A new request has `spec.revoked: true`.',
    remedy: 'Omit `revoked`.',
  },
  RequesterForged: {
    audience: 'requester',
    meaning: '`spec.requester` of a new request is not the caller.',
    remedy: 'Omit `spec.requester`; the webhook sets it.',
  },
  ForeignHold: {
    audience: 'requester',
    meaning:
      'A new request has a finalizer other than that of the server, or an owner reference. Or a vote, an AccessSession, or an object of a grant has a finalizer, owner, label, or annotation that it may not have.',
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
    meaning:
      'The template, an object that it uses, or the version or configuration of the server changed after the decision, and before the server opened the access after a restart or a failure.',
    remedy: 'Create a new request. If the server would deny a new request, too, the message says why.',
  },
  NameCollision: {
    audience: 'operator',
    meaning:
      'An object with the name of the Pod, Role, or RoleBinding exists and was not created for this request. The server did not change it.',
    remedy: 'Find out which client created it, and delete it.',
  },
  ResourceRefused: {
    audience: 'anyone',
    meaning: 'The API server rejected the Pod, Role, or RoleBinding of a grant, or a dry run of them for a template.',
    remedy:
      'Do what the message says. The cause is an invalid field, a quota, Pod Security, a webhook or policy, or a permission that the server does not hold.',
  },
} as const satisfies CodeTable;

/** Denials and Events of calls that connect to a pod. */
export const podCodes = {
  NotYourPod: {
    audience: 'anyone',
    meaning: 'The access pod was opened for another user.',
    remedy: 'Create your own request.',
  },
  AccessEnded: {
    audience: 'requester',
    meaning: 'No open request grants access to the access pod.',
    remedy: 'Create a new request.',
  },
  UseGateway: {
    audience: 'requester',
    meaning: 'The grant of the access pod lets its requester enter only through the gateway.',
    remedy:
      'Run `kubectl drawbridge exec NAME -n NAMESPACE` with the name of the request or, for calls other than exec, `kubectl drawbridge use`.',
  },
  NoGatewayGrant: {
    audience: 'operator',
    meaning: 'The gateway tried to enter a pod that no open grant with `session.via: Gateway` opens.',
    remedy:
      'If a grant has just ended, do nothing. Otherwise find out which client has the token of the gateway, and delete the Pods of the gateway to revoke the token.',
  },
  PodNotFound: { audience: 'anyone', meaning: 'The pod does not exist.', remedy: 'Correct the name.' },
  BreakGlass: {
    audience: 'operator',
    meaning:
      'A member of the break-glass group connected to an access pod, and no grant allowed the call. This is not a denial.',
    remedy: 'Ask the member for the reason.',
  },
} as const satisfies CodeTable;

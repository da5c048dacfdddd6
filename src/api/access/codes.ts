import type { CodeTable } from '../code-table.ts';

/** Denials of requests, by the webhook or by the leader. */
export const requestCodes = {
  NotEligible: {
    audience: 'requester',
    meaning: 'The requester is in none of the allowed groups of the template, and does not hold its permissions.',
    remedy: 'Ask for membership in one of the groups that the message names, or use another template.',
  },
  MissingIdentity: {
    audience: 'requester',
    meaning:
      'The caller is anonymous, or the mutating webhook did not write the requester, the author, or `kubeconfigSetBy`.',
    remedy: 'Log in. An operator checks that the mutating webhook is registered.',
  },
  StampMissing: {
    audience: 'requester',
    meaning: 'The request was created while the webhooks were not registered, or the CRDs are older than the server.',
    remedy: 'An operator applies the CRDs and the webhook configurations; then create a new request.',
  },
  StampInvalid: {
    audience: 'operator',
    meaning:
      'The signature in `spec.requester` does not match: another client wrote, copied, or changed it, or the server no longer has its key.',
    remedy: 'Find out which client wrote it. Create a new request.',
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
    remedy: 'Correct `spec.templateName`, or the template.',
  },
  TemplateNotReady: {
    audience: 'requester',
    meaning: 'The template has a condition that is False.',
    remedy: 'Read the conditions of the template; its author corrects it.',
  },
  InvalidDuration: {
    audience: 'requester',
    meaning: 'A duration is not a Go duration, is out of bounds, or a default exceeds the maximum.',
    remedy: 'Write a Go duration from 1s up, such as `30m`. In a template: default ≤ maximum ≤ ten years.',
  },
  LimitReached: {
    audience: 'requester',
    meaning: 'The user, the namespace, or the template has as many open grants as its limit allows.',
    remedy: 'Revoke a grant, or wait until the time that the message names. Then create a new request.',
  },
  InvalidTargetPod: {
    audience: 'requester',
    meaning: 'The name is invalid, the pod is not running, or the workload of the template does not control it.',
    remedy: 'Name a running pod of the workload, or omit `spec.targetPod`.',
  },
  NoRunningPod: {
    audience: 'requester',
    meaning: 'The workload controls no running pod.',
    remedy: 'Wait until it runs, then create a new request.',
  },
  RequesterImmutable: {
    audience: 'requester',
    meaning: '`spec.requester` of a request cannot change.',
    remedy: 'Delete the request and create a new one.',
  },
  SpecImmutable: {
    audience: 'requester',
    meaning: 'The spec of a request cannot change, except that `revoked` may become true.',
    remedy: 'Delete the request and create a new one.',
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
    meaning: 'A new request has foreign finalizers or owners.',
    remedy: 'Omit `metadata.finalizers` and `metadata.ownerReferences`.',
  },
  NamespaceClosed: {
    audience: 'requester',
    meaning: 'The server never opens access in `kube-system` or in the namespace of drawbridge.',
    remedy: 'Move the workload to another namespace.',
  },
  TooLate: {
    audience: 'requester',
    meaning: 'The requested time passed before the server could open access.',
    remedy: 'Create a new request. An operator finds the cause of the delay in the log.',
  },
  PlanChanged: {
    audience: 'requester',
    meaning:
      'The template or the workload changed after the decision, and before the server opened the access after a restart or a failure.',
    remedy: 'Create a new request. If that would be denied, too, the message says why.',
  },
  NameCollision: {
    audience: 'operator',
    meaning:
      'An object with the name of the Pod, Role, or RoleBinding exists and was not created for this request. The server did not change it.',
    remedy: 'Find out which client created it, and delete it.',
  },
  ResourceRefused: {
    audience: 'operator',
    meaning: 'The API server rejected the Pod, Role, or RoleBinding. The message has its reason.',
    remedy: 'Check quotas, Pod Security, other webhooks, and the permissions of the server.',
  },
} as const satisfies CodeTable;

/** Denials of templates, and of requests through them. */
export const templateCodes = {
  AuthorMissing: {
    audience: 'author',
    meaning: '`spec.author` is missing: the API server did not call the webhooks, or a client removed the author.',
    remedy: 'Apply the template again once the webhooks answer.',
  },
  AuthorForged: {
    audience: 'author',
    meaning: '`spec.author` is not the caller.',
    remedy: 'Omit `spec.author`. If you omitted it, apply the template again once the webhooks answer.',
  },
  AuthorUnknown: {
    audience: 'author',
    meaning: 'The template has no verified author.',
    remedy:
      'A user who holds the permissions of the template updates it, for example with `kubectl patch podaccesstemplate NAME -n NAMESPACE --type=merge -p \'{"spec":{"author":{"username":"me"}}}\'`.',
  },
  AuthorLacksRights: {
    audience: 'author',
    meaning:
      'The author lacks a permission that the template hands out: get, list, and watch pods, exec into them, `accessConfig.rules`, create pods (PodAccessTemplate), or `allow-privileged` the template (`allowPrivilegedPod`).',
    remedy: 'Ask for the permissions that the message names, or ask a user who holds them to update the template.',
  },
  SystemGroup: {
    audience: 'author',
    meaning: '`allowedGroups` names a group that Kubernetes itself assigns, such as `system:authenticated`.',
    remedy: 'Name groups of teams.',
  },
  MissingTarget: {
    audience: 'author',
    meaning: 'The template has neither a workload nor a pod spec.',
    remedy: 'Set `controllerTargetRef` or `podSpec`.',
  },
  TargetNotFound: {
    audience: 'author',
    meaning: 'The workload does not exist.',
    remedy: 'Create it, or correct `controllerTargetRef`.',
  },
  InvalidSelector: {
    audience: 'author',
    meaning: 'The selector of the workload is missing or invalid.',
    remedy: 'Correct the workload.',
  },
  InvalidAccessCommand: {
    audience: 'author',
    meaning: '`accessCommand` is not a `kubectl` or `oc` command to the granted pod.',
    remedy:
      'Write exec, attach, logs, or port-forward to `{{ .Metadata.Name }}`, with the options and placeholders that the message lists. Put text for the shell in the pod between single quotes.',
  },
  InvalidPodSpec: {
    audience: 'author',
    meaning: '`podSpec` has no containers.',
    remedy: 'Write a PodSpec as in a Pod.',
  },
  InvalidPodTemplate: {
    audience: 'author',
    meaning: 'The pod template of the workload, after the mutations of the template, is invalid.',
    remedy: 'Correct the field that the message names.',
  },
  InvalidMutationConfig: {
    audience: 'author',
    meaning: '`controllerTargetMutationConfig` cannot be applied.',
    remedy: 'Correct the field that the message names.',
  },
  InvalidPatch: {
    audience: 'author',
    meaning: 'An operation of `patchSpecOperations` is invalid or fails.',
    remedy: 'Correct the operation that the message names.',
  },
  InvalidQuantity: {
    audience: 'author',
    meaning: 'A quantity is invalid.',
    remedy: 'Write a quantity such as `500m` or `2Gi` in the field that the message names.',
  },
  ContainerNotFound: {
    audience: 'author',
    meaning: 'The pod has no container named `defaultContainerName`.',
    remedy: 'Name one of the containers that the message lists.',
  },
  PlanTooLarge: {
    audience: 'author',
    meaning: 'Planning the access pod exceeds the work limit or the time limit of one grant.',
    remedy: 'Shorten the pod template of the workload, `podSpec`, or `patchSpecOperations`.',
  },
  PodReachesTooFar: {
    audience: 'author',
    meaning: 'The access pod exceeds the baseline level of Pod Security, or chooses its ServiceAccount or node.',
    remedy:
      'Remove the field that the message names, or ask an administrator to set `allowPrivilegedPod`. If the message of `ResourceRefused` has this code, ask an administrator to add the label `access.drawbridge.dev/allow-privileged` to the Namespace.',
  },
  PodIsSelected: {
    audience: 'author',
    meaning: 'A Service, PodDisruptionBudget, or NetworkPolicy for other pods selects the access pod.',
    remedy: 'Change `podLabels`, or list the object in `allowedSelectors`.',
  },
  ConfinementLost: {
    audience: 'author',
    meaning: 'NetworkPolicies isolate the egress of the workload, but would not isolate that of the access pod.',
    remedy:
      'Add the labels that the message names to `podLabels`, and list the Services and budgets that select them in `allowedSelectors`.',
  },
  InvalidRules: {
    audience: 'author',
    meaning: '`accessConfig.rules` has something other than named verbs on pods and their subresources.',
    remedy: 'Correct the rule that the message names.',
  },
  TooManyRights: {
    audience: 'author',
    meaning:
      '`accessConfig.rules` adds more than 64 permissions. The server checks each with a call to the API server.',
    remedy: 'Remove some, or create a second template.',
  },
  NotGrantable: {
    audience: 'author',
    meaning: 'This installation does not allow templates to hand out the rule.',
    remedy: 'Remove the rule, or ask an administrator to add it to the chart value `grantable`.',
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
    meaning: 'The request of the access pod has ended.',
    remedy: 'Create a new request.',
  },
  PodNotFound: { audience: 'anyone', meaning: 'The pod does not exist.', remedy: 'Correct the name.' },
  BreakGlass: {
    audience: 'operator',
    meaning: 'A member of the break-glass group connected to the access pod of another user. This is not a denial.',
    remedy: 'Ask the member for the reason.',
  },
} as const satisfies CodeTable;

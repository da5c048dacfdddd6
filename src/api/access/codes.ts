import type { CodeTable } from '../code-table.ts';

/** Denials of requests, by the webhook or by the leader. */
export const requestCodes = {
  NotEligible: {
    audience: 'requester',
    meaning: 'The requester is in none of the allowed groups of the template.',
    remedy: 'Ask for membership in one of the groups that the message names, or use another template.',
  },
  MissingIdentity: {
    audience: 'requester',
    meaning: 'The caller is anonymous, or the webhook did not write the requester.',
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
      'The signature in `spec.requester` does not match: another client wrote, copied, or changed it, or its key is gone.',
    remedy: 'Find out which client wrote it. Create a new request.',
  },
  StampExpired: {
    audience: 'operator',
    meaning: 'The signature in `spec.requester` is more than 10 s older, or 2 s newer, than the request.',
    remedy: 'It was copied, or clocks differ: synchronize the clocks. Create a new request.',
  },
  StampReplayed: {
    audience: 'operator',
    meaning: 'The signature in `spec.requester` was used before, by a request that was deleted since.',
    remedy: 'Find out which client created the request from a copy.',
  },
  TemplateNotFound: {
    audience: 'requester',
    meaning: 'The namespace of the request has no such template.',
    remedy: 'Correct `spec.templateName`.',
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
    remedy: 'Revoke a grant, or wait until one ends as the message says; then create a new request.',
  },
  InvalidTargetPod: {
    audience: 'requester',
    meaning: 'The pod is not running, or the workload of the template does not control it.',
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
    meaning: 'Access is never opened in `kube-system` or in the namespace of drawbridge.',
    remedy: 'Move the workload to another namespace.',
  },
  TooLate: {
    audience: 'requester',
    meaning: 'The requested time passed before access could be opened.',
    remedy: 'Create a new request. An operator finds the cause of the delay in the log.',
  },
  PlanChanged: {
    audience: 'requester',
    meaning: 'The template or the workload changed while access was being opened across a restart.',
    remedy: 'Create a new request.',
  },
  NameCollision: {
    audience: 'operator',
    meaning:
      'An object with the name of the Pod, Role, or RoleBinding exists and belongs to no grant. It was not changed.',
    remedy: 'Find out who created it, and delete it.',
  },
  ResourceRefused: {
    audience: 'operator',
    meaning: 'The API server refused the Pod, Role, or RoleBinding. The message has its reason.',
    remedy: 'Check quotas, Pod Security, other webhooks, and the permissions of the server.',
  },
} as const satisfies CodeTable;

/** Denials of templates, and of requests through them. */
export const templateCodes = {
  AuthorMissing: {
    audience: 'author',
    meaning: '`spec.author` is missing: the webhooks were not called for the template, or the author was removed.',
    remedy: 'Apply the template again when the webhooks answer.',
  },
  AuthorForged: {
    audience: 'author',
    meaning: '`spec.author` is not the caller.',
    remedy: 'Omit `spec.author`. If you did, apply the template again when the webhooks answer.',
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
      'The author lacks a permission that the template grants: get, list, and watch pods, exec into them, create them (PodAccessTemplate), or `allow-privileged` the template (`allowPrivilegedPod`).',
    remedy: 'Ask for the permissions that the message names, or have a user who holds them update the template.',
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
      'Write exec, attach, logs, or port-forward to `{{ .Metadata.Name }}`, with the options and placeholders that the message lists. Quote what the shell in the pod reads.',
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
    meaning: 'Planning the access pod exceeds the budget of one grant.',
    remedy: 'Make the pod template or the patch smaller.',
  },
  PodReachesTooFar: {
    audience: 'author',
    meaning: 'The access pod exceeds the baseline level of Pod Security, or chooses its ServiceAccount or node.',
    remedy:
      'Remove the field that the message names, or have an administrator set `allowPrivilegedPod`. In the message of `ResourceRefused`, the Namespace lacks the label `access.drawbridge.dev/allow-privileged`.',
  },
  PodIsSelected: {
    audience: 'author',
    meaning: 'A Service, PodDisruptionBudget, or NetworkPolicy for other pods selects the access pod.',
    remedy: 'Change `podLabels`, or list the object in `allowedSelectors`.',
  },
  ConfinementLost: {
    audience: 'author',
    meaning: 'NetworkPolicies isolate the egress of the workload, and the access pod would not be isolated.',
    remedy:
      'Add the labels that the message names to `podLabels`, and list the Services and budgets that select them in `allowedSelectors`.',
  },
  InvalidRules: {
    audience: 'author',
    meaning: '`accessConfig.rules` names something other than verbs on pods and its subresources.',
    remedy: 'Correct the rule that the message names.',
  },
  TooManyRights: {
    audience: 'author',
    meaning: '`accessConfig.rules` adds more than 64 permissions, each of which is one question to the API server.',
    remedy: 'Remove some, or write a second template.',
  },
  NotGrantable: {
    audience: 'author',
    meaning: 'The server may not grant the rule.',
    remedy: 'Remove the rule, or have an administrator add it to the chart value `grantable`.',
  },
} as const satisfies CodeTable;

/** Calls that enter a pod. */
export const podCodes = {
  NotYourPod: {
    audience: 'anyone',
    meaning: 'The access pod was opened for another user.',
    remedy: 'Request access of your own.',
  },
  AccessEnded: {
    audience: 'requester',
    meaning: 'The request behind the access pod has ended.',
    remedy: 'Create a new request.',
  },
  PodNotFound: { audience: 'anyone', meaning: 'The pod does not exist.', remedy: 'Correct the name.' },
  BreakGlass: {
    audience: 'operator',
    meaning: 'Not a denial: a member of the break-glass group entered the access pod of another user.',
    remedy: 'Ask for the reason.',
  },
} as const satisfies CodeTable;

import type { CodeTable } from '../code-table.ts';

/** Denials of templates, and of requests through them. */
export const templateCodes = {
  InvalidPattern: {
    audience: 'author',
    meaning: 'The pattern for reasons is not RE2 syntax, or compiles to more than 256 instructions.',
    remedy: 'Write a shorter pattern in RE2 syntax, without lookaround and with small counts.',
  },
  GrantToGroups: {
    audience: 'author',
    meaning: '`grantTo: AllowedGroups` is set together with `approvals` or `emergency`; voters would get the access.',
    remedy: 'Set `grantTo: Requester`, or use two templates.',
  },
  GatewayToGroups: {
    audience: 'author',
    meaning: '`grantTo: AllowedGroups` is set together with `session.via: Gateway`.',
    remedy: 'Set `grantTo: Requester`, or use two templates.',
  },
  GatewayRule: {
    audience: 'author',
    meaning:
      '`session.via` is `Gateway`, and `accessConfig.rules` has a permission whose calls the gateway does not pass.',
    remedy:
      'Remove the permission. The gateway passes get, list, and watch of the pod, get of `pods/log`, and get and create of `pods/exec`, `pods/attach`, and `pods/portforward`.',
  },
  GatewayUnavailable: {
    audience: 'operator',
    meaning:
      'The API server does not forward calls to the gateway: the APIService `v1alpha1.gateway.drawbridge.dev` is missing or not Available. Templates with `session.via: Gateway` are not ready meanwhile.',
    remedy:
      'Install the gateway, or read `kubectl describe apiservice v1alpha1.gateway.drawbridge.dev` and the log of the gateway. If access must open without it, the author sets `session.via: Direct`.',
  },
  InvalidSession: {
    audience: 'author',
    meaning:
      '`session.idleAfter` is not a Go duration from 1m to 24h. Or `idleAfter` or `record` is set, and `session.via` is not `Gateway`. Or `recordInput` is true without `record`.',
    remedy:
      'Write a duration such as `15m`, or set `via: Gateway` or `record`, as the message says. Or remove the field.',
  },
  InvalidWindow: {
    audience: 'author',
    meaning: 'A window for the start of access names an unknown time zone.',
    remedy: 'Write an IANA name, such as `Europe/Berlin`.',
  },
  AuthorMissing: {
    audience: 'author',
    meaning:
      '`spec.author` is missing: the API server did not call the webhooks, for example because the chart value `namespaces` does not list the namespace, or a client removed the author.',
    remedy:
      'An operator adds the namespace to `namespaces`, if it is not served. Otherwise apply the template again once the webhooks answer.',
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
      'The author lacks a permission that the template hands out: to get, list, and watch pods, to exec into them, those of `accessConfig.rules`, to create pods (PodAccessTemplate), or the verb `allow-privileged` on the template (`allowPrivilegedPod`).',
    remedy: 'Ask for the permissions that the message names, or ask a user who holds them to update the template.',
  },
  SystemGroup: {
    audience: 'author',
    meaning:
      'The template names a group that begins with `system:`, a prefix that Kubernetes reserves, in `allowedGroups`, `approvals`, or `emergency`.',
    remedy: 'Name the groups of the people who may request or approve access.',
  },
  InvalidGroup: {
    audience: 'author',
    meaning: 'The name of a group in `allowedGroups`, `approvals`, or `emergency` begins or ends with white space.',
    remedy: 'Write the name as `kubectl auth whoami` shows it to a member.',
  },
  MissingTarget: {
    audience: 'author',
    meaning: 'The template has neither a workload nor a pod spec.',
    remedy: 'Set `controllerTargetRef` or, in a PodAccessTemplate, `podSpec`.',
  },
  TargetNotFound: {
    audience: 'author',
    meaning: 'The workload that the template names does not exist.',
    remedy: 'Create the workload, or correct `controllerTargetRef`.',
  },
  InvalidSelector: {
    audience: 'author',
    meaning: 'The selector of the workload is missing or invalid.',
    remedy: 'Correct the workload.',
  },
  InvalidAccessCommand: {
    audience: 'author',
    meaning:
      '`accessCommand` is not one call of `kubectl` or `oc` to `{{ .Metadata.Name }}` with the verbs and options that the message lists, or uses a label or annotation that the pod does not have. Or it is `kubectl exec`, the default, and `exec` is `false`.',
    remedy:
      'Write a command with the verbs, options, and placeholders that the message lists. Put what a shell in the pod must interpret after `sh -c`, between single quotes.',
  },
  InvalidPodSpec: {
    audience: 'author',
    meaning: '`podSpec.containers` is not a list of at least one container.',
    remedy: 'Write a PodSpec as in a Pod.',
  },
  InvalidPodTemplate: {
    audience: 'author',
    meaning:
      '`podSpec`, or the pod template of the workload after the mutations of the template, is invalid, as the server or the API server finds.',
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
    meaning:
      'The pod has no container with the name in `defaultContainerName` or, without it, in the annotation `kubectl.kubernetes.io/default-container` of the workload.',
    remedy: 'Set `defaultContainerName` to one of the containers that the message lists.',
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
    remedy: 'Change `podLabels` or `patchSpecOperations`, or list the object in `allowedSelectors`.',
  },
  ConfinementLost: {
    audience: 'author',
    meaning: 'NetworkPolicies isolate the egress of the workload, but would not isolate that of the access pod.',
    remedy:
      'If the access pod does not get labels that the message names, add them to `podLabels`, and the entries that it names to `allowedSelectors`. If labels do not match, change or remove them in `podLabels` or `patchSpecOperations`.',
  },
  InvalidRules: {
    audience: 'author',
    meaning:
      '`accessConfig.rules` has something other than named verbs on pods and their subresources. Or `exec` is `false`, and the template has no rule, or has one for `pods/exec`.',
    remedy: 'Correct the rule that the message names.',
  },
  TooManyRights: {
    audience: 'author',
    meaning:
      '`accessConfig.rules` adds more than 64 permissions. The server checks each with a call to the API server.',
    remedy: 'Remove some rules, or create a second template.',
  },
  NotGrantable: {
    audience: 'author',
    meaning: 'This installation does not allow templates to hand out the rule.',
    remedy:
      'Write what the message says is allowed, or ask an administrator to add the rule to the chart value `grantable`.',
  },
} as const satisfies CodeTable;

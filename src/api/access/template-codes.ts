import type { CodeTable } from '../code-table.ts';

/** Denials of templates, and of requests through them. */
export const templateCodes = {
  InvalidTemplate: {
    audience: 'author',
    meaning:
      'A field of the template, or its workload, is invalid, as the server or the API server finds. No request through it opens access.',
    remedy: 'Correct the field that the message names.',
  },
  GatewayUnavailable: {
    audience: 'operator',
    meaning:
      'The API server does not forward calls to the gateway: the APIService `v1alpha1.gateway.drawbridge.dev` is missing or not Available.',
    remedy:
      'Install the gateway, or read `kubectl describe apiservice v1alpha1.gateway.drawbridge.dev` and the log of the gateway.',
  },
  AuthorMissing: {
    audience: 'author',
    meaning:
      '`spec.author` is missing: the API server did not call the webhooks, for example because the chart value `namespaces` does not list the namespace, or a client removed the author.',
    remedy:
      'An operator adds the namespace to `namespaces`, if it is not served. Otherwise apply the template again once the webhooks answer.',
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
      'The author lacks a permission that the template hands out, or that it needs to create pods or privileged pods.',
    remedy: 'Ask for the permissions that the message names, or ask a user who holds them to update the template.',
  },
  InvalidGroup: {
    audience: 'author',
    meaning: 'The name of a group in `allowedGroups`, `approvals`, or `emergency` begins or ends with white space.',
    remedy: 'Write the name as `kubectl auth whoami` shows it to a member.',
  },
  TargetNotFound: {
    audience: 'author',
    meaning: 'The workload that the template names does not exist.',
    remedy: 'Create the workload, or correct `controllerTargetRef`.',
  },
  InvalidAccessCommand: {
    audience: 'author',
    meaning:
      '`accessCommand` is not one call of `kubectl` or `oc` that the message allows, needs `exec` although that is `false`, or uses a label or annotation that the pod does not have.',
    remedy: 'Write a command with the verbs, options, and placeholders that the message lists.',
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
      'Remove the field that the message names, or ask an administrator to [allow it](../concepts/template-authors.md#privileged-pods).',
  },
  PodIsSelected: {
    audience: 'author',
    meaning: 'A Service, PodDisruptionBudget, or NetworkPolicy for other pods selects the access pod.',
    remedy: 'Change `podLabels`, or list the object in `allowedSelectors`.',
  },
  ConfinementLost: {
    audience: 'author',
    meaning: 'NetworkPolicies isolate the egress of the workload, but would not isolate that of the access pod.',
    remedy: 'Add the labels that the message names to `podLabels`, or the entries that it names to `allowedSelectors`.',
  },
  NotGrantable: {
    audience: 'author',
    meaning: 'This installation does not allow templates to hand out the rule.',
    remedy:
      'Write what the message says is allowed, or ask an administrator to add the rule to the chart value `grantable`.',
  },
} as const satisfies CodeTable;

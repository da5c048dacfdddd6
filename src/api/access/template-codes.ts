import type { CodeTable } from '../code-table.ts';

/** Denials of templates, and of requests through them. */
export const templateCodes = {
  InvalidTemplate: {
    audience: 'author',
    meaning: 'A field of the template, or its workload, is invalid. No request through it opens access.',
    remedy: 'Correct the field that the message names.',
  },
  GatewayUnavailable: {
    audience: 'operator',
    meaning:
      'The APIService `v1alpha1.gateway.drawbridge.dev`, through which the API server calls the gateway, is missing or not Available.',
    remedy: 'Install the gateway, or read its log and `kubectl describe apiservice v1alpha1.gateway.drawbridge.dev`.',
  },
  AuthorMissing: {
    audience: 'author',
    meaning:
      '`spec.author` is missing: a client removed it, or the webhooks were not called, for example because the chart value `namespaces` lacks the namespace.',
    remedy:
      'An operator adds the namespace, if it is missing. Otherwise apply the template again once the webhooks answer.',
  },
  AuthorUnknown: {
    audience: 'author',
    meaning: 'The template has no author, because drawbridge was not called when it was written.',
    remedy:
      'A user who holds its permissions updates it, for example with `kubectl patch podaccesstemplate NAME -n NAMESPACE --type=merge -p \'{"spec":{"author":{"username":"me"}}}\'`.',
  },
  AuthorLacksRights: {
    audience: 'author',
    meaning: 'The author lacks a permission that the template hands out, or needs to create pods or privileged pods.',
    remedy: 'Ask for the permissions that the message names, or ask a holder to update the template.',
  },
  InvalidGroup: {
    audience: 'author',
    meaning: 'A group in `allowedGroups`, `approvals`, or `emergency` begins or ends with white space.',
    remedy: 'Write the name as `kubectl auth whoami` shows it to a member.',
  },
  TargetNotFound: {
    audience: 'author',
    meaning: 'The workload of the template does not exist.',
    remedy: 'Create the workload, or correct `controllerTargetRef`.',
  },
  InvalidAccessCommand: {
    audience: 'author',
    meaning:
      '`accessCommand` is not one allowed call of `kubectl` or `oc`, needs `exec` although that is `false`, or uses a label or annotation that the pod lacks.',
    remedy: 'Use only the verbs, options, and placeholders that the message lists.',
  },
  PlanTooLarge: {
    audience: 'author',
    meaning: 'Planning the access pod exceeds the work or time limit of a grant.',
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
    meaning: 'NetworkPolicies isolate the egress of the workload, but not that of the access pod.',
    remedy: 'Add what the message names to `podLabels` or `allowedSelectors`.',
  },
  NotGrantable: {
    audience: 'author',
    meaning: 'This installation does not let templates hand out the rule.',
    remedy: 'Write what the message allows, or ask an administrator to add the rule to the chart value `grantable`.',
  },
} as const satisfies CodeTable;

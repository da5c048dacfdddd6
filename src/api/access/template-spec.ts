import { type Static, type TSchemaOptions, Type } from 'typebox';
import { listOf, objectName, oneOf, time } from '../schema/fields.ts';
import {
  accessConfigFields,
  attestedUser,
  boundedDuration,
  durationUnits,
  matchesGoDuration,
} from './access-config.ts';
import { templateRule } from './grant.ts';

/** Above zero. A CEL rule, not a pattern, so that the server can read older, invalid objects. */
const duration = (options: TSchemaOptions & { default: string }) =>
  Type.String({
    maxLength: 64,
    'x-kubernetes-validations': [
      {
        rule: `self.${matchesGoDuration} && duration(self) > duration('0s')`,
        message: `must be a Go duration of at least 1s, such as 30m or 1h30m; ${durationUnits}`,
      },
    ],
    ...options,
  });

const shorten = 'lower defaultDuration, which is 1h if unset, or raise maxDuration';

export const accessConfig = Type.Object(
  {
    allowedGroups: listOf(Type.String({ minLength: 1, maxLength: 512 }), 256, {
      description: 'Their members can request access. The names are those that the API server reports.',
    }),
    defaultDuration: duration({
      description: 'The duration if a request has none. A Go duration of at least 1s, such as 30m or 1h30m.',
      default: '1h',
    }),
    maxDuration: duration({
      description: 'drawbridge caps longer requests. A Go duration of at least 1s.',
      default: '24h',
    }),
    maxGrants: Type.Optional(
      Type.Integer({
        description: 'The maximum number of open grants. If unset, there is no limit.',
        minimum: 1,
        maximum: 100_000,
      }),
    ),
    accessCommand: Type.String({
      description:
        'The command that requesters see once access is open: one call of kubectl or oc, with {{ .Metadata.Name }} for the pod. {{ .Metadata.Namespace }}, {{ index .Metadata.Labels "key" }}, and {{ index .Metadata.Annotations "key" }} are allowed, too.',
      default: 'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
      maxLength: 4096,
    }),
    exec: Type.Optional(
      Type.Boolean({
        description:
          'Whether a grant allows exec into the pod; true if unset. If false, only reading the pod, and what allow and rules add.',
      }),
    ),
    allow: Type.Optional(
      listOf(oneOf(['logs', 'port-forward']), 2, {
        description:
          'What a grant also allows on its pod. logs is short for a rule with get on pods/log, and port-forward for one with get and create on pods/portforward.',
      }),
    ),
    rules: Type.Optional(
      listOf(templateRule, 8, {
        description:
          'What a grant also allows on its pod: verbs on pods and their subresources, such as get on pods/attach.',
      }),
    ),
    grantTo: oneOf(['Requester', 'AllowedGroups'], {
      description: 'Who gets access: the requester, or every member of allowedGroups, as in Oz.',
      default: 'Requester',
    }),
    historyTTL: Type.Optional(
      boundedDuration(
        'How long a request stays after its end. If unset, 24h if its name was generated, otherwise 0s. Denied requests, and emergencies without their review, can stay longer. If there are too many ended requests, the oldest go earlier.',
        '0s',
        '168h',
      ),
    ),
    ...accessConfigFields,
  },
  {
    description: 'Who can request which access, and for how long.',
    'x-kubernetes-validations': [
      {
        rule: "self.grantTo != 'AllowedGroups' || (!has(self.approvals) && !has(self.emergency))",
        message:
          'must be Requester if approvals or emergency is set: a person who approves must never get the access that they approve',
        fieldPath: '.grantTo',
      },
      {
        rule: "self.grantTo != 'AllowedGroups' || !has(self.session) || self.session.via != 'Gateway'",
        message: 'must be Requester if session.via is Gateway: a session through the gateway belongs to one person',
        fieldPath: '.grantTo',
      },
      {
        rule: `!self.defaultDuration.${matchesGoDuration} || !self.maxDuration.${matchesGoDuration} || duration(self.defaultDuration) <= duration(self.maxDuration)`,
        message: `is longer than maxDuration; ${shorten}`,
        messageExpression: `self.defaultDuration + ' is longer than maxDuration ' + self.maxDuration + '; ${shorten}'`,
        fieldPath: '.defaultDuration',
      },
    ],
  },
);

export type AccessConfig = Static<typeof accessConfig>;

/** In the namespace of the template, which gives access to its pods. */
export const controllerTargetRef = Type.Object(
  {
    apiVersion: oneOf(['apps/v1', 'argoproj.io/v1alpha1'], {
      description: 'argoproj.io/v1alpha1 for a Rollout, otherwise apps/v1.',
    }),
    kind: oneOf(['Deployment', 'DaemonSet', 'StatefulSet', 'Rollout'], { description: 'The kind of the workload.' }),
    name: objectName('In the namespace of this template.'),
  },
  {
    description: 'The workload whose pods this template gives access to.',
    'x-kubernetes-validations': [
      {
        rule: "(self.kind == 'Rollout') == (self.apiVersion == 'argoproj.io/v1alpha1')",
        message:
          'kind and apiVersion do not match; a Rollout is argoproj.io/v1alpha1, and any other workload is apps/v1',
      },
    ],
  },
);

/** Of the current version of a template, as the API server authenticated them. */
export const author = Type.Object(
  {
    ...attestedUser,
    time: time('When the webhook set these fields.'),
  },
  {
    description:
      'Who created the template, or changed its spec last, and must hold all permissions that it hands out. The admission webhook sets it, over any submitted value, and an admission policy denies another user.',
  },
);

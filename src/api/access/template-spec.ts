import { type Static, type TSchemaOptions, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
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
      description:
        'The groups, as the API server reports them, whose members can request access through this template.',
    }),
    defaultDuration: duration({
      description: 'The duration of a grant if its request has none, as a Go duration such as 30m or 1h30m.',
      default: '1h',
    }),
    maxDuration: duration({
      description: 'The maximum duration of a grant, as a Go duration. The server caps longer requests.',
      default: '24h',
    }),
    maxGrants: Type.Optional(
      Type.Integer({
        description: 'The maximum number of open grants of this template. If unset, there is no limit.',
        minimum: 1,
        maximum: 100_000,
      }),
    ),
    accessCommand: Type.String({
      description:
        'The command that requesters see once access is open: one call of kubectl or oc, with {{ .Metadata.Name }}. The placeholders refer to the pod. Only these are allowed: {{ .Metadata.Name }}, {{ .Metadata.Namespace }}, {{ index .Metadata.Labels "key" }}, and {{ index .Metadata.Annotations "key" }}.',
      default: 'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
      maxLength: 4096,
    }),
    exec: Type.Optional(
      Type.Boolean({
        description:
          'Whether a grant allows exec into the pod; true if unset. If false, it allows reading the pod and what rules add, for example only its logs.',
      }),
    ),
    rules: Type.Optional(
      listOf(templateRule, 8, {
        description:
          'What a grant allows in addition to reading the pod and, unless exec is false, exec into it: verbs on pods and their subresources, such as get on pods/log. Each rule applies only to the granted pod.',
      }),
    ),
    grantTo: Type.Union([Type.Literal('Requester'), Type.Literal('AllowedGroups')], {
      description:
        'The subjects of a grant. Requester: the user who created the request. AllowedGroups: every member of the allowed groups, as in Oz.',
      default: 'Requester',
    }),
    historyTTL: Type.Optional(
      boundedDuration(
        'How long a request stays after its end, so that people can read how it ended. If unset, 24h if its name was generated, otherwise 0s. A denied request, and emergency access without its review, can stay longer. If there are too many ended requests, the server deletes the oldest earlier.',
        '0s',
        '168h',
      ),
    ),
    ...accessConfigFields,
  },
  {
    description: 'The groups that can request access, the durations, and the access command.',
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
    apiVersion: Type.Union([Type.Literal('apps/v1'), Type.Literal('argoproj.io/v1alpha1')], {
      description: 'The API of the workload: apps/v1, or argoproj.io/v1alpha1 for a Rollout.',
    }),
    kind: Type.Union(
      [Type.Literal('Deployment'), Type.Literal('DaemonSet'), Type.Literal('StatefulSet'), Type.Literal('Rollout')],
      { description: 'The kind of the workload.' },
    ),
    name: objectName('The name of the workload, in the namespace of this template.'),
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
    time: time('When the template was created, or when its spec or author last changed.'),
    signature: Type.Optional(
      Type.String({
        description: 'Proves that the webhook wrote these fields for this version of the template.',
        maxLength: 128,
      }),
    ),
  },
  {
    description:
      'The author of this template, who must hold all permissions that it hands out. The admission webhook sets it to the user who changes the spec, and overwrites any submitted value.',
  },
);

type Author = Static<typeof author>;

/** What the webhook signs: the author of a version of a template. */
export interface AuthorAttestation {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: TemplateVersion;
  readonly author: Omit<Author, 'signature'>;
}

/**
 * Every change of the spec increments the generation. A new template has no uid at admission, so
 * its spec without the author stands for the version.
 */
export type TemplateVersion = { readonly uid: string; readonly generation: number } | { readonly spec: object };

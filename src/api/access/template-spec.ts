import { type Static, type TSchemaOptions, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
import { templateRule } from './grant.ts';

/** Go's duration grammar without a sign: `30m`, `1h30m`, `1.5h`. */
const goDuration = "matches('^(([0-9]+(\\\\.[0-9]*)?|\\\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$')";

/** The grammar is a CEL rule, not a pattern, so that readers can report invalid durations that were stored before the rule existed. */
const duration = (options: TSchemaOptions & { default: string }) =>
  Type.String({
    maxLength: 64,
    'x-kubernetes-validations': [
      {
        rule: `self.${goDuration} && duration(self) > duration('0s')`,
        message: 'must be a Go duration above zero, such as 30m or 1h30m',
      },
    ],
    ...options,
  });

/** Who can request access through a template, for how long, and the command that they see once access is open. */
export const accessConfig = Type.Object(
  {
    allowedGroups: listOf(Type.String({ minLength: 1, maxLength: 512 }), 256, {
      description:
        'The groups, as the API server reports them, whose members can request access through this template.',
    }),
    defaultDuration: duration({
      description: 'How long access stays open if a request has no duration, as a Go duration such as 30m or 1h30m.',
      default: '1h',
    }),
    maxDuration: duration({
      description: 'The longest duration of a grant, as a Go duration. The server caps longer requests at it.',
      default: '24h',
    }),
    maxGrants: Type.Optional(
      Type.Integer({
        description: 'How many grants of this template may be open at once. Unset means no limit.',
        minimum: 1,
        maximum: 100_000,
      }),
    ),
    accessCommand: Type.String({
      description:
        'The command that requesters see once access is open: kubectl or oc (exec, attach, logs, port-forward) to {{ .Metadata.Name }}. Placeholders, all of the pod: {{ .Metadata.Name }}, {{ .Metadata.Namespace }}, {{ index .Metadata.Labels "key" }}, and {{ index .Metadata.Annotations "key" }}. No other placeholders are allowed.',
      default: 'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
      maxLength: 4096,
    }),
    rules: Type.Optional(
      listOf(templateRule, 8, {
        description:
          'Rules of the Role in addition to reading the pod and exec into it: verbs on pods and their subresources, such as get on pods/log. They apply only to the granted pod.',
      }),
    ),
    grantTo: Type.Union([Type.Literal('Requester'), Type.Literal('AllowedGroups')], {
      description:
        'Who gets access: Requester is the creator of the request; AllowedGroups is every member of the allowed groups, as in Oz.',
      default: 'Requester',
    }),
  },
  {
    description: 'Who can request access, and for how long.',
    'x-kubernetes-validations': [
      {
        rule: `!self.defaultDuration.${goDuration} || !self.maxDuration.${goDuration} || duration(self.defaultDuration) <= duration(self.maxDuration)`,
        message: 'must not be longer than maxDuration: lower the one or raise the other',
        fieldPath: '.defaultDuration',
      },
    ],
  },
);

export type AccessConfig = Static<typeof accessConfig>;

/** The workload, always in the template's own namespace, whose pods a template gives access to. */
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
        message: 'a Rollout is argoproj.io/v1alpha1; a Deployment, DaemonSet or StatefulSet is apps/v1',
      },
    ],
  },
);

/** The author of the current version of a template, as the API server authenticated them. */
export const author = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({ description: 'The user’s uid, where the authenticator has one.', default: '', maxLength: 1024 }),
    groups: listOf(Type.String({ maxLength: 1024 }), 1024, {
      description: 'The groups that the user was in at that time.',
      default: [],
    }),
    time: time('When the template was created, or when its spec or author last changed.'),
    signature: Type.Optional(
      Type.String({
        description: 'Proves that the webhook wrote these fields for the current version of the template.',
        maxLength: 128,
      }),
    ),
  },
  {
    description:
      'The author of this template, who must hold all permissions that it hands out. The admission webhook sets it to the user who changes the spec and overwrites any value that was sent.',
  },
);

type Author = Static<typeof author>;

/** The value that the webhook signs: who wrote which version of a template. */
export interface AuthorAttestation {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: TemplateVersion;
  readonly author: Omit<Author, 'signature'>;
}

/**
 * The version of a template: its uid and generation, because every change of the spec increments the generation. A new template has no uid
 * when the webhook sees it, so its spec without the author identifies it.
 */
export type TemplateVersion = { readonly uid: string; readonly generation: number } | { readonly spec: object };

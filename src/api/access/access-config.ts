import { type Static, type TSchemaOptions, Type } from 'typebox';
import { listOf } from '../schema/fields.ts';
import { templateRule } from './grant.ts';

/** Go's duration grammar without a sign: `30m`, `1h30m`, `1.5h`. */
const goDuration = "matches('^(([0-9]+(\\\\.[0-9]*)?|\\\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$')";

/** The grammar is a CEL rule, not a pattern: readers must be able to report durations that were stored before it. */
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

/** Who may ask through a template, for how long, and what they are told when access is open. */
export const accessConfig = Type.Object(
  {
    allowedGroups: listOf(Type.String({ minLength: 1, maxLength: 512 }), 256, {
      description: 'The groups, as the API server knows them, whose members may ask for access through this template.',
    }),
    defaultDuration: duration({
      description: 'How long access stays open when a request does not say, as a Go duration such as 30m or 1h30m.',
      default: '1h',
    }),
    maxDuration: duration({
      description: 'The longest that a request gets, as a Go duration. Longer requests are cut to it.',
      default: '24h',
    }),
    maxGrants: Type.Optional(
      Type.Integer({
        description: 'How many grants of this template may be open at once. Unset is no limit.',
        minimum: 1,
        maximum: 100_000,
      }),
    ),
    accessCommand: Type.String({
      description:
        'The command that requesters are shown once access is open. Placeholders, all of the pod: {{ .Metadata.Name }}, {{ .Metadata.Namespace }}, {{ index .Metadata.Labels "key" }} and {{ index .Metadata.Annotations "key" }}. Nothing else is replaced.',
      default: 'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
      maxLength: 4096,
    }),
    rules: Type.Optional(
      listOf(templateRule, 8, {
        description:
          'What a grant gives besides seeing the pod and exec into it, as rules of a Role: verbs on pods and its subresources, such as get on pods/log. They hold for the granted pod alone.',
      }),
    ),
    grantTo: Type.Union([Type.Literal('Requester'), Type.Literal('AllowedGroups')], {
      description:
        'Who is let in: Requester is the person who asked, AllowedGroups is every member of the allowed groups, as Oz does it.',
      default: 'Requester',
    }),
  },
  {
    description: 'Who may ask for access, and for how long.',
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

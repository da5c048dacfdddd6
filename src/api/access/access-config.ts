import { type Static, type TSchemaOptions, Type } from 'typebox';
import { listOf, oneOf } from '../schema/fields.ts';

/** CEL: Go's duration grammar without a sign: `30m`, `1h30m`, `1.5h`. */
export const matchesGoDuration = "matches('^(([0-9]+(\\\\.[0-9]*)?|\\\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$')";

/** For a duration without a unit, or with one that Go does not have. */
export const durationUnits = 'write h, m, or s after each number';

/** Characters: of a request, an extension, a vote, or a revocation. */
export const maxReasonLength = 1024;
export const maxExtensions = 10;

/** Go durations. `readBySchema` evaluates no CEL rules, so the server may read others. */
export const boundedDuration = (description: string, least: string, most: string, options: TSchemaOptions = {}) =>
  Type.String({
    description: `${description} A Go duration, ${least} to ${most}.`,
    maxLength: 64,
    'x-kubernetes-validations': [
      {
        rule: `self.${matchesGoDuration} && duration(self) >= duration('${least}') && duration(self) <= duration('${most}')`,
        message: `must be a Go duration from ${least} to ${most}, such as 1h30m; ${durationUnits}`,
      },
    ],
    ...options,
  });

/** As the API server authenticated them, in fields that only the admission webhook sets. */
export const attestedUser = {
  username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
  uid: Type.String({
    description: 'Empty if the authenticator provides none.',
    default: '',
    maxLength: 1024,
  }),
  groups: listOf(Type.String({ maxLength: 1024 }), 1024, {
    description: 'The user’s groups at the time of the write.',
    default: [],
  }),
};

const groups = (description: string) =>
  listOf(Type.String({ minLength: 1, maxLength: 512 }), 64, { description, minItems: 1 });

const approvalEntry = Type.Object({
  name: Type.String({
    description: 'Shown in the status, such as peer or security.',
    pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
    maxLength: 63,
  }),
  // Not a default of the schema: kubectl apply would replace the list on each call.
  count: Type.Optional(
    Type.Integer({
      description: 'How many people must approve. If unset, one.',
      minimum: 1,
      maximum: 10,
    }),
  ),
  groups: Type.Optional(
    groups('Only votes of their members count. They need the verb approve, too. If unset, that verb is enough.'),
  ),
});

const approvals = Type.Object(
  {
    all: listOf(approvalEntry, 4, {
      description: 'Every entry must get its count of approvals. A person counts for one entry only.',
      minItems: 1,
      'x-kubernetes-validations': [
        {
          rule: 'self.all(one, self.filter(other, other.name == one.name).size() == 1)',
          message: 'two entries have the same name; entry names must be unique',
        },
      ],
    }),
    pendingFor: boundedDuration(
      'How long a request waits for its approvals. Then drawbridge denies it.',
      '5m',
      '168h',
      {
        default: '1h',
      },
    ),
    claimWithin: Type.Optional(
      boundedDuration(
        'How long the requester has to set spec.claimed, from the approval or a later spec.startAt. Access starts with the claim or, with start.windows, in the next window. If unset, access starts without a claim.',
        '1m',
        '168h',
      ),
    ),
    serviceAccounts: Type.Boolean({
      description: 'Whether votes of ServiceAccounts count, such as a chat bot.',
      default: false,
    }),
  },
  { description: 'Who must approve a request before access opens. Voters need the verb approve on this template.' },
);

const reason = Type.Object(
  {
    minLength: Type.Integer({
      description: 'The minimum number of characters.',
      minimum: 0,
      maximum: maxReasonLength,
      default: 1,
    }),
    pattern: Type.Optional(
      Type.String({
        description:
          'A regular expression in RE2 syntax that spec.reason must match somewhere, such as ^(INC|CHG)-[0-9]+.',
        minLength: 1,
        maxLength: 256,
      }),
    ),
    prompt: Type.Optional(
      Type.String({ description: 'Tells requesters what to write, for example: ticket and why.', maxLength: 256 }),
    ),
    link: Type.Optional(
      Type.String({
        description: 'The address of the ticket, for status.reasonLink. {match} stands for what the pattern matched.',
        pattern: '^https://[^\\s{}]*(\\{match\\}[^\\s{}]*)?$',
        maxLength: 512,
      }),
    ),
  },
  { description: 'Rules for spec.reason of each request.' },
);

/** As `Intl.DateTimeFormat` abbreviates them in English. */
export const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;

const timeOfDay = (description: string, pattern: string) => Type.String({ description, pattern, maxLength: 5 });

const startWindow = Type.Object({
  days: listOf(oneOf(weekdays), 7, {
    description: 'The days on which the window opens.',
    minItems: 1,
  }),
  from: timeOfDay('When it opens, such as 08:00.', '^([01][0-9]|2[0-3]):[0-5][0-9]$'),
  to: timeOfDay(
    'When it closes, such as 18:00 or 24:00. If to is not after from, on the next day.',
    '^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$',
  ),
  timeZone: Type.String({
    description: 'The IANA time zone of from and to, such as Europe/Berlin.',
    minLength: 1,
    maxLength: 64,
  }),
});

const start = Type.Object(
  {
    maxAhead: Type.Optional(
      boundedDuration(
        'The longest time from the creation of a request to its spec.startAt. If unset, it may not set startAt.',
        '1m',
        '8760h',
      ),
    ),
    windows: Type.Optional(
      listOf(startWindow, 14, {
        description: 'Access starts only in one of these weekly windows, but may last beyond it.',
        minItems: 1,
      }),
    ),
  },
  { description: 'When access may start. Emergency access starts at once.' },
);

const extension = Type.Object(
  {
    times: Type.Integer({
      description: 'How often one request may be extended.',
      minimum: 1,
      maximum: maxExtensions,
      default: 1,
    }),
    total: boundedDuration('The longest access, with all extensions.', '1m', '168h'),
    approvals: oneOf(['Same', 'None'], {
      description: 'Same: an extension needs the approvals of the template again.',
      default: 'Same',
    }),
  },
  { description: 'Lets requesters extend their access while it is open.' },
);

const emergency = Type.Object(
  {
    groups: groups(
      'Their members may set spec.emergency. They need not be in allowedGroups, but need permission to create requests.',
    ),
    maxDuration: boundedDuration('The longest duration of emergency access.', '1m', '24h', { default: '30m' }),
    reviewWithin: boundedDuration(
      'How long after its start another person must review emergency access. While a review is overdue, the requester gets no more of it through this template.',
      '1h',
      '720h',
      {
        default: '72h',
      },
    ),
  },
  {
    description:
      'Lets members of some groups open access without approvals. Each use causes a Warning Event, and another person must review it.',
  },
);

const session = Type.Object(
  {
    via: oneOf(['Direct', 'Gateway'], {
      description:
        'Direct: users call the API server, and open sessions in a workload’s pod outlive the grant. Gateway: users reach the pod only through the gateway, which ends their sessions with the grant.',
      default: 'Direct',
    }),
    idleAfter: Type.Optional(
      boundedDuration(
        'How long a session may pass no data before the gateway ends it. Followed logs do not end. If unset, there is no limit.',
        '1m',
        '24h',
      ),
    ),
    record: Type.Optional(
      oneOf(['Off', 'BestEffort', 'Required'], {
        description:
          'Whether the gateway records the output of sessions, but never port-forwards and logs. BestEffort: a session continues if its recording fails. Required: no session starts or continues without its recording; in emergencies, as BestEffort. Default: Off.',
      }),
    ),
    recordInput: Type.Optional(
      Type.Boolean({
        description: 'Whether recordings include what users type, including passwords. Default: false.',
      }),
    ),
  },
  {
    description: 'How users reach the pod of a grant. Edits do not change open grants.',
    'x-kubernetes-validations': [
      {
        rule: "self.via == 'Gateway' || !has(self.idleAfter)",
        message: 'needs via: Gateway, because only the gateway can end idle sessions; set via, or remove idleAfter',
        fieldPath: '.idleAfter',
      },
      {
        rule: "self.via == 'Gateway' || !has(self.record) || self.record == 'Off'",
        message: 'needs via: Gateway, because only the gateway can record sessions; set via, or remove record',
        fieldPath: '.record',
      },
      {
        rule: "!has(self.recordInput) || !self.recordInput || (has(self.record) && self.record != 'Off')",
        message: 'needs record: BestEffort or Required; set record, or remove recordInput',
        fieldPath: '.recordInput',
      },
    ],
  },
);

export const accessConfigFields = {
  approvals: Type.Optional(approvals),
  reason: Type.Optional(reason),
  start: Type.Optional(start),
  extension: Type.Optional(extension),
  emergency: Type.Optional(emergency),
  session: Type.Optional(session),
};

/** Of `accessConfig.approvals.all`. */
export type ApprovalEntry = Static<typeof approvalEntry>;
export type ReasonConfig = Static<typeof reason>;
export type StartConfig = Static<typeof start>;
/** A weekly window of `accessConfig.start`. */
export type StartWindow = Static<typeof startWindow>;
export type ExtensionConfig = Static<typeof extension>;

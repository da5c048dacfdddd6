import { type Static, Type } from 'typebox';
import { listOf, objectName, oneOf, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { maxColumnText, maxMissing, missingInput } from './fields.ts';
import { reconcileRuns } from './names.ts';

/** Past runs in a record, besides the last one. */
export const maxHistory = 10;
export const maxReasons = 8;

const outcomeName = oneOf(['Done', 'NotReady', 'Progressing', 'Retry', 'Failed', 'Deleted'], {
  description: 'Outcome of the run.',
});

const operation = oneOf(['reconcile', 'delete'], {
  description: 'reconcile: create and update what the entry needs. delete: delete what the component created.',
  default: 'reconcile',
});

const heldBy = oneOf(['Suspended', 'Disabled', 'NotApplicable', 'TooLarge', 'RegistrationRefused', 'Unreachable'], {
  description:
    'Why drawbridge starts no run, as in status.components of the entry. Unreachable: the next run waits until the endpoint accepts calls. Absent if a run may start, and during a run.',
});

const count = (description: string) => Type.Integer({ description, default: 0, minimum: 0, format: 'int64' });
const reasons = listOf(Type.String({ maxLength: 316 }), maxReasons, {
  description: 'Reasons for the run.',
  default: [],
});
const millis = Type.Integer({ description: 'Milliseconds.', minimum: 0, format: 'int64' });
const credential = (description: string) => Type.String({ description, maxLength: 128 });

export const reconcileRunKind = defineKind({
  resource: reconcileRuns,
  description:
    'A ReconcileRun is the run record of one component of one entry: the current run, the last outcome, and the time of the next run.',
  spec: Type.Object(
    {
      entry: Type.Object(
        {
          name: objectName('Name of the entry, in this namespace.'),
          uid: Type.String({ description: 'UID of the entry.', minLength: 1, maxLength: 128 }),
        },
        { description: 'The entry.' },
      ),
      component: objectName('The name of the component.'),
      seq: count('Number of the last started run.'),
      phase: oneOf(['Idle', 'Running', 'Applying'], {
        description:
          'Running: drawbridge calls or called the component, and has no outcome yet. Applying: drawbridge writes the outputs of the outcome.',
        default: 'Idle',
      }),
      operation,
      reasons,
      why: Type.Optional(
        Type.String({ description: 'The reasons in words, cut to the width of a column.', maxLength: maxColumnText }),
      ),
      inputsDigest: Type.Optional(
        Type.String({
          description: 'Digest of the inputs of the last run; absent if they changed during it.',
          maxLength: 64,
        }),
      ),
      credentialID: Type.Optional(credential('ID of the token that authorizes writes, while the component runs.')),
      previousCredentialID: Type.Optional(
        credential('ID of the previous token after a refresh, valid until previousCredentialExpiresAt.'),
      ),
      previousCredentialExpiresAt: Type.Optional(time('When the previous token stops authorizing writes.')),
      startedAt: Type.Optional(time('When drawbridge started the last run.')),
      asynchronous: Type.Boolean({
        description: 'Whether the component answered the current run with 202, and reports to the callback.',
        default: false,
      }),
      leaseUntil: Type.Optional(
        time(
          'Deadline of the current run. Heartbeats extend it; changes by less than 10 % of the granted time are not stored.',
        ),
      ),
      attempt: count(
        'Retry outcomes since the last Done, or the first run with these inputs and operation; or calls in a row that the component did not accept.',
      ),
      nextAt: Type.Optional(time('Time of the next run if nothing triggers one earlier, once heldBy is absent.')),
      heldBy: Type.Optional(heldBy),
      next: Type.Optional(
        Type.String({
          description:
            'When the next run starts, or why none does, in words. With "or earlier", a change of the inputs or the force annotation starts it earlier.',
          maxLength: maxColumnText,
        }),
      ),
      lastOutcome: Type.Optional(
        Type.Object(
          {
            seq: count('Number of the run.'),
            outcome: outcomeName,
            reason: Type.Optional(
              Type.String({
                description: 'Code that drawbridge gave the outcome, if any. Components give none.',
                maxLength: 64,
              }),
            ),
            message: Type.Optional(
              Type.String({
                description: 'Of the component, or of drawbridge if it chose the outcome.',
                maxLength: 1024,
              }),
            ),
            missing: Type.Optional(
              Type.Array(missingInput, {
                description: 'The inputs that the component waits for.',
                maxItems: maxMissing,
                'x-kubernetes-list-type': 'atomic',
              }),
            ),
            endedAt: time('When the run ended.'),
            since: Type.Optional(time('When the first of the consecutive runs with this outcome ended.')),
            durationMillis: millis,
          },
          { description: 'The last run that ended.' },
        ),
      ),
      history: listOf(
        Type.Object({
          seq: count('Number of the run.'),
          operation,
          reasons,
          outcome: outcomeName,
          reason: Type.Optional(
            Type.String({ description: 'Code that drawbridge gave the outcome, if any.', maxLength: 64 }),
          ),
          startedAt: time('When the run started.'),
          durationMillis: millis,
        }),
        maxHistory,
        { description: 'Earlier runs that ended with an outcome, latest first.', default: [] },
      ),
    },
    {
      description: 'drawbridge writes the whole spec.',
      'x-kubernetes-validations': [
        {
          rule: 'self.entry == oldSelf.entry && self.component == oldSelf.component',
          message: 'entry and component are immutable',
          reason: 'FieldValueForbidden',
        },
        { rule: 'self.seq >= oldSelf.seq', message: 'seq must not decrease', reason: 'FieldValueForbidden' },
        {
          rule: "!has(self.credentialID) && !has(self.previousCredentialID) || self.phase == 'Running'",
          message: 'credentialID and previousCredentialID are allowed only in phase Running',
          reason: 'FieldValueForbidden',
        },
      ],
    },
  ),
  status: Type.Object({}, { description: 'Not used.' }),
  printerColumns: [
    column('Entry', '.spec.entry.name', 'Name of the entry.'),
    column('Component', '.spec.component', 'Name of the component.'),
    column('Phase', '.spec.phase', 'Phase of the current run.'),
    column('Seq', '.spec.seq', 'Number of the last run.', { type: 'integer' }),
    column('Last Outcome', '.spec.lastOutcome.outcome', 'Outcome of the last run that ended.'),
    column('Last Reason', '.spec.lastOutcome.reason', 'Machine-readable reason of the last outcome.', { priority: 1 }),
    column('Why', '.spec.why', 'Reasons for the last run, in words.'),
    column('Reasons', '.spec.reasons', 'Reasons for the last run.', { priority: 1 }),
    column('Next', '.spec.next', 'When the next run starts, or why none does.', { priority: 1 }),
    column('Message', '.spec.lastOutcome.message', 'Message of the last outcome.', { priority: 1 }),
    ageColumn,
  ],
});

export type ReconcileRun = ObjectOf<typeof reconcileRunKind>;
export type OutcomeName = Static<typeof outcomeName>;
/** To reconcile, or to delete what the component created. */
export type Operation = Static<typeof operation>;

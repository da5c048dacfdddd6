import { type Static, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { maxMissing, missingInput } from './fields.ts';
import { reconcileRuns } from './names.ts';

/** Most runs that the record remembers besides the last one. */
export const maxHistory = 10;
/** Most reasons that are kept of one run. */
export const maxReasons = 8;

export const outcomeName = Type.Union(
  [
    Type.Literal('Done'),
    Type.Literal('NotReady'),
    Type.Literal('Progressing'),
    Type.Literal('Retry'),
    Type.Literal('Failed'),
    Type.Literal('Deleted'),
  ],
  { description: 'What the run came to.' },
);

const operation = Type.Union([Type.Literal('reconcile'), Type.Literal('delete')], {
  description: 'What the component was asked to do.',
  default: 'reconcile',
});

const count = (description: string) => Type.Integer({ description, default: 0, minimum: 0, format: 'int64' });
const reasons = listOf(Type.String({ maxLength: 316 }), maxReasons, { description: 'Why it ran.', default: [] });
const millis = Type.Integer({ description: 'How long it took, milliseconds.', minimum: 0, format: 'int64' });
const credential = (description: string) => Type.String({ description, maxLength: 128 });

export const reconcileRunKind = defineKind({
  resource: reconcileRuns,
  description:
    'A ReconcileRun is the record of one component of one entry: what runs now, what the last run came to and when the next one is due.',
  spec: Type.Object(
    {
      entry: Type.Object(
        {
          name: objectName('Its name, in this namespace.'),
          uid: Type.String({ description: 'Its uid.', minLength: 1, maxLength: 128 }),
        },
        { description: 'The entry.' },
      ),
      component: objectName('The name of the component.'),
      seq: count('The number of the last run that was started.'),
      phase: Type.Union([Type.Literal('Idle'), Type.Literal('Running'), Type.Literal('Applying')], {
        description: 'Running: the component was called. Applying: it has answered, and its outputs are being written.',
        default: 'Idle',
      }),
      operation,
      reasons,
      inputsDigest: Type.Optional(Type.String({ description: 'The digest of its inputs.', maxLength: 64 })),
      credentialID: Type.Optional(
        credential('The id of the token that may write now; only while the component is running.'),
      ),
      previousCredentialID: Type.Optional(
        credential('The id of the token before it, while a refreshed one has not replaced it everywhere.'),
      ),
      previousCredentialExpiresAt: Type.Optional(time('When that one ends.')),
      startedAt: Type.Optional(time('When it was started.')),
      asynchronous: Type.Boolean({
        description: 'Whether the component has taken the run over and reports back.',
        default: false,
      }),
      leaseUntil: Type.Optional(time('When it counts as lost, unless it is heard of.')),
      attempt: count('How many runs in a row are to be retried.'),
      nextAt: Type.Optional(time('When it is due again by itself.')),
      lastOutcome: Type.Optional(
        Type.Object(
          {
            seq: count('The number of the run.'),
            outcome: outcomeName,
            reason: Type.Optional(Type.String({ description: 'Why, as one word for programs.', maxLength: 64 })),
            message: Type.Optional(Type.String({ description: 'What the component said.', maxLength: 1024 })),
            missing: Type.Optional(
              Type.Array(missingInput, {
                description: 'The inputs that it waits for.',
                maxItems: maxMissing,
                'x-kubernetes-list-type': 'atomic',
              }),
            ),
            endedAt: time('When it ended.'),
            durationMillis: millis,
          },
          { description: 'What the last run that ended came to.' },
        ),
      ),
      history: listOf(
        Type.Object({
          seq: count('The number of the run.'),
          operation,
          reasons,
          outcome: outcomeName,
          startedAt: time('When it was started.'),
          durationMillis: millis,
        }),
        maxHistory,
        { description: 'The runs before it, the latest first.', default: [] },
      ),
    },
    {
      description: 'All of it is written by the server, in one write guarded by the resourceVersion.',
      'x-kubernetes-validations': [
        {
          rule: 'self.entry == oldSelf.entry && self.component == oldSelf.component',
          message: 'a record cannot be about something else',
          reason: 'FieldValueForbidden',
        },
        { rule: 'self.seq >= oldSelf.seq', message: 'seq cannot go back', reason: 'FieldValueForbidden' },
        {
          rule: "!has(self.credentialID) && !has(self.previousCredentialID) || self.phase == 'Running'",
          message: 'a credential dies with its run',
          reason: 'FieldValueForbidden',
        },
      ],
    },
  ),
  status: Type.Object({}, { description: 'Not used.' }),
  printerColumns: [
    column('Entry', '.spec.entry.name', 'The entry.'),
    column('Component', '.spec.component', 'The component.'),
    column('Phase', '.spec.phase', 'What is going on now.'),
    column('Seq', '.spec.seq', 'The number of the last run.', { type: 'integer' }),
    column('Outcome', '.spec.lastOutcome.outcome', 'What the last one came to.'),
    column('Why', '.spec.reasons', 'Why it ran.'),
    column('Next', '.spec.nextAt', 'When it runs again by itself.', { priority: 1 }),
    column('Message', '.spec.lastOutcome.message', 'What the component said.', { priority: 1 }),
    ageColumn,
  ],
});

export type ReconcileRun = ObjectOf<typeof reconcileRunKind>;
export type OutcomeName = Static<typeof outcomeName>;
export type Operation = Static<typeof operation>;

export function readReconcileRun(object: unknown): Read<ReconcileRun> {
  return readObject(reconcileRunKind, object);
}

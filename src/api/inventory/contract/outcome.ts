import { type Static, Type } from 'typebox';
import { listIn, own } from '../../../kit/json-value.ts';
import { opaqueObject } from '../../schema/fields.ts';
import { type FieldError, type Read, readBySchema } from '../../schema/read.ts';
import { toStructural } from '../../schema/structural-schema.ts';
import { type MissingInput, maxMissing, missingInput } from '../fields.ts';
import { type Operation, outcomeName } from '../reconcile-run.ts';

/** What a run came to. */
export type Outcome =
  /** The inputs of this run are satisfied. */
  | ({ readonly outcome: 'Done' } & WithMessage & WithOutputs)
  /** Inputs are missing: not a failure. Repeated when they are there. */
  | ({ readonly outcome: 'NotReady'; readonly missing: readonly [MissingInput, ...MissingInput[]] } & WithMessage)
  /** Something outside goes on: not a failure. Repeated after so many seconds. */
  | ({ readonly outcome: 'Progressing'; readonly requeueAfterSeconds: number } & WithMessage & WithOutputs)
  /** A fault that may pass: repeated with backoff. */
  | ({ readonly outcome: 'Retry' } & WithMessage)
  /** It cannot be done with these inputs: repeated when they change, and now and then. */
  | ({ readonly outcome: 'Failed' } & WithMessage)
  /** Everything that the component made is gone; only for the operation delete. */
  | ({ readonly outcome: 'Deleted' } & WithMessage);

interface WithMessage {
  readonly message?: string;
}

interface WithOutputs {
  /** A merge patch of the entry's `status.outputs`, keyed by owner; only what the component owns. Its content is hostile. */
  readonly outputs?: Readonly<Record<string, unknown>>;
}

/** Longest message that is kept, characters; more is cut off. */
export const maxMessage = 1024;

/** Longest value that `equals` may wait for, characters of its JSON: it is shown in the status of the entry. */
const maxValue = 1024;

const outcomeBody = Type.Object({
  run: Type.Optional(Type.String({ maxLength: 256 })),
  outcome: outcomeName,
  missing: Type.Array(missingInput, { maxItems: maxMissing, default: [] }),
  requeueAfterSeconds: Type.Number({ minimum: 0, maximum: 86_400, default: 0 }),
  message: Type.String({ maxLength: 65_536, default: '' }),
  outputs: Type.Optional(opaqueObject('')),
});

type OutcomeBody = Static<typeof outcomeBody>;

const structural = toStructural(outcomeBody, 'outcome');

/** The run whose outcome is expected. */
export interface ExpectedRun {
  readonly id: string;
  readonly operation: Operation;
}

/**
 * Reads the outcome in an answer or a report, once it is parsed. It may come from anybody; a `run` in it has to be the one expected, and
 * it has to be an outcome that the operation can have. Never throws.
 */
export function readOutcome(body: unknown, expected: ExpectedRun): Read<Outcome> {
  const read = readBySchema<OutcomeBody>(structural, body, '');
  if (!read.ok) return read;
  const errors = errorsOf(read.value, body, expected);
  return errors.length > 0 ? { ok: false, errors } : { ok: true, value: outcomeOf(read.value) };
}

function errorsOf({ run, outcome, missing, outputs }: OutcomeBody, body: unknown, expected: ExpectedRun): FieldError[] {
  const errors: FieldError[] = [];
  if (run !== undefined && run !== expected.id) {
    errors.push({ field: 'run', message: `is about another run than ${expected.id}` });
  }
  const final = expected.operation === 'delete' ? 'Deleted' : 'Done';
  if ((outcome === 'Done' || outcome === 'Deleted') && outcome !== final) {
    errors.push({ field: 'outcome', message: `${outcome} is no outcome of ${expected.operation}; say ${final}` });
  }
  if (outcome === 'NotReady' && missing.length === 0) {
    errors.push({ field: 'missing', message: 'NotReady has to name at least one missing input' });
  }
  for (const [index, { want, value }] of missing.entries()) {
    const hasValue = own(listIn(body, 'missing')[index], 'value') !== undefined;
    if ((want === 'equals') !== hasValue) {
      errors.push({ field: `missing[${index}].value`, message: 'goes with want: equals, and only with it' });
    } else if (JSON.stringify(value ?? null).length > maxValue) {
      errors.push({ field: `missing[${index}].value`, message: `may have ${maxValue} characters as JSON` });
    }
  }
  if (outputs !== undefined && outcome !== 'Done' && outcome !== 'Progressing') {
    errors.push({ field: 'outputs', message: `${outcome} publishes nothing; only Done and Progressing do` });
  }
  return errors;
}

function outcomeOf(body: OutcomeBody): Outcome {
  const said = body.message === '' ? {} : { message: body.message.slice(0, maxMessage) };
  const published = body.outputs === undefined ? {} : { outputs: body.outputs };
  const [first, ...rest] = body.missing;
  switch (body.outcome) {
    case 'Done':
      return { outcome: 'Done', ...said, ...published };
    case 'Progressing':
      return { outcome: 'Progressing', requeueAfterSeconds: body.requeueAfterSeconds, ...said, ...published };
    case 'NotReady':
      return first ? { outcome: 'NotReady', missing: [first, ...rest], ...said } : { outcome: 'Retry', ...said };
    default:
      return { outcome: body.outcome, ...said };
  }
}

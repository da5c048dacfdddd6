import { type Static, Type } from 'typebox';
import { quote } from '../../../kit/errors.ts';
import { isRecord, listIn, own } from '../../../kit/json-value.ts';
import { opaqueObject } from '../../schema/fields.ts';
import { type FieldError, type Read, readBySchema } from '../../schema/read.ts';
import { toStructural } from '../../schema/structural-schema.ts';
import { type MissingInput, maxMissing, missingInput } from '../fields.ts';
import type { Operation, OutcomeName } from '../reconcile-run.ts';

export type Outcome =
  /** The inputs of this run are reconciled. */
  | ({ readonly outcome: 'Done' } & WithMessage & WithOutputs)
  /**
   * No failure. Runs again once the missing inputs are as wanted, an input changes, or its
   * interval (at most 10 minutes) is over. Inputs that were so all along do not count: no loop.
   */
  | ({ readonly outcome: 'NotReady'; readonly missing: readonly [MissingInput, ...MissingInput[]] } & WithMessage)
  /** No failure: something external is in progress. Runs again after 1 to 3,600 s; default 15 s. */
  | ({ readonly outcome: 'Progressing'; readonly requeueAfterSeconds: number } & WithMessage & WithOutputs)
  /** A transient failure. The server retries with backoff. */
  | ({ readonly outcome: 'Retry' } & WithMessage)
  /** A permanent failure with these inputs. Runs again on a change, by force, and about hourly. */
  | ({ readonly outcome: 'Failed' } & WithMessage)
  /** Everything that the component created is deleted. Only for the operation `delete`. */
  | ({ readonly outcome: 'Deleted' } & WithMessage);

interface WithMessage {
  /** For people. */
  readonly message?: string;
}

interface WithOutputs {
  /**
   * Untrusted merge patch of `status.outputs`. A path that is not the component's fails the run.
   */
  readonly outputs?: Readonly<Record<string, unknown>>;
}

/** Characters stored; a longer message is truncated, and one over 65,536 is invalid. */
export const maxMessage = 1024;

/** After Progressing, if the component names no time. */
export const defaultRequeueSeconds = 15;

/** Characters of JSON in `equals`: the status of the entry contains the value. */
const maxValue = 1024;

const outcomeBody = Type.Object({
  run: Type.Optional(Type.String({ maxLength: 256 })),
  outcome: Type.String({ maxLength: 65_536 }),
  missing: Type.Array(missingInput, { maxItems: maxMissing, default: [] }),
  requeueAfterSeconds: Type.Number({ minimum: 0, maximum: 86_400, default: defaultRequeueSeconds }),
  message: Type.String({ maxLength: 65_536, default: '' }),
  outputs: Type.Optional(opaqueObject('')),
});

const outcomesOf: Readonly<Record<Operation, readonly OutcomeName[]>> = {
  reconcile: ['Done', 'NotReady', 'Progressing', 'Retry', 'Failed'],
  delete: ['Deleted', 'NotReady', 'Progressing', 'Retry', 'Failed'],
};

/** `errorsOf` checks the outcome, because the operation decides which are allowed. */
type OutcomeBody = Static<typeof outcomeBody> & { readonly outcome: OutcomeName };

const structuralSchema = toStructural(outcomeBody, 'outcome');

export interface ExpectedRun {
  readonly id: string;
  readonly operation: Operation;
}

/** The body is untrusted; a `run` in it must be the expected one's ID. Never throws. */
export function readOutcome(body: unknown, expected: ExpectedRun): Read<Outcome> {
  const read = readBySchema<OutcomeBody>(structuralSchema, body, '');
  if (!read.ok) return read;
  const errors = errorsOf(read.value, body, expected);
  return errors.length > 0 ? { ok: false, errors } : { ok: true, value: outcomeOf(read.value) };
}

function errorsOf({ run, outcome, missing, outputs }: OutcomeBody, body: unknown, expected: ExpectedRun): FieldError[] {
  const errors: FieldError[] = [];
  if (run !== undefined && run !== expected.id) {
    errors.push({
      field: 'run',
      message: `names run ${quote(run)}; only run ${expected.id} is allowed here; send the ID of the run that the call named`,
    });
  }
  const allowed = outcomesOf[expected.operation];
  if (!allowed.includes(outcome)) {
    errors.push({
      field: 'outcome',
      message: `must be one of ${allowed.map((name) => quote(name)).join(', ')} for the operation ${expected.operation}; found ${quote(outcome)}`,
    });
    return errors;
  }
  if (outcome === 'NotReady' && missing.length === 0) {
    errors.push({ field: 'missing', message: 'is empty; NotReady must name at least one missing input' });
  }
  for (const [index, { want, value }] of missing.entries()) {
    const hasValue = own(listIn(body, 'missing')[index], 'value') !== undefined;
    if ((want === 'equals') !== hasValue) {
      errors.push({ field: `missing[${index}].value`, message: 'must be set if want is equals, and only then' });
    } else if (JSON.stringify(value ?? null).length > maxValue) {
      errors.push({
        field: `missing[${index}].value`,
        message: `is too long; at most ${maxValue} characters of JSON are allowed`,
      });
    }
  }
  if (outputs !== undefined && outcome !== 'Done' && outcome !== 'Progressing') {
    errors.push({
      field: 'outputs',
      message: `must be absent, because the outcome is ${outcome}; only Done and Progressing may have outputs`,
    });
  }
  for (const [owner, value] of Object.entries(outputs ?? {})) {
    if (!isRecord(value) && value !== null)
      errors.push({
        field: `outputs.${owner.slice(0, 64)}`,
        message:
          'must be an object, or null to remove it; the first level of outputs names components, such as {"outputs": {"network": {"vnetName": "v"}}}',
      });
  }
  return errors;
}

function outcomeOf(body: OutcomeBody): Outcome {
  const message = body.message === '' ? {} : { message: body.message.slice(0, maxMessage) };
  const outputs = body.outputs === undefined ? {} : { outputs: body.outputs };
  const [first, ...rest] = body.missing;
  switch (body.outcome) {
    case 'Done':
      return { outcome: 'Done', ...message, ...outputs };
    case 'Progressing':
      return { outcome: 'Progressing', requeueAfterSeconds: body.requeueAfterSeconds, ...message, ...outputs };
    case 'NotReady':
      return first ? { outcome: 'NotReady', missing: [first, ...rest], ...message } : { outcome: 'Retry', ...message };
    default:
      return { outcome: body.outcome, ...message };
  }
}

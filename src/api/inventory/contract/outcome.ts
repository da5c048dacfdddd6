import { type Static, Type } from 'typebox';
import { quote } from '../../../kit/errors.ts';
import { isRecord, listIn, own } from '../../../kit/json-value.ts';
import { opaqueObject } from '../../schema/fields.ts';
import { type FieldError, type Read, readBySchema } from '../../schema/read.ts';
import { toStructural } from '../../schema/structural-schema.ts';
import { type MissingInput, maxMissing, missingInput } from '../fields.ts';
import type { Operation, OutcomeName } from '../reconcile-run.ts';

/** Result of a run. */
export type Outcome =
  /** The component reconciled the inputs of this run. */
  | ({ readonly outcome: 'Done' } & WithMessage & WithOutputs)
  /**
   * Inputs are missing, which is not a failure. The server runs the component again once each missing input is as its `want` requires, or
   * when the inputs of the component change. If all of them already were as required at the start and at the end of the run, the server
   * would repeat the run forever. So it runs the component for them only after it has observed that one of them was not as required. Without
   * a trigger, the server runs the component again after the interval of its registration or 10 minutes, whichever is shorter, with 20 %
   * jitter.
   */
  | ({ readonly outcome: 'NotReady'; readonly missing: readonly [MissingInput, ...MissingInput[]] } & WithMessage)
  /**
   * An external operation is in progress, which is not a failure. The server runs the component again after `requeueAfterSeconds`, at least
   * 1 s and at most 3,600 s. `readOutcome` sets 15 s if the component names no time, and rejects more than 86,400 s.
   */
  | ({ readonly outcome: 'Progressing'; readonly requeueAfterSeconds: number } & WithMessage & WithOutputs)
  /** A transient failure. The server retries with backoff. */
  | ({ readonly outcome: 'Retry' } & WithMessage)
  /**
   * A permanent failure with these inputs. The server runs the component again when these inputs change, when a user forces a run, and
   * about once an hour.
   */
  | ({ readonly outcome: 'Failed' } & WithMessage)
  /** The component deleted everything that it created. Valid only for the operation `delete`. */
  | ({ readonly outcome: 'Deleted' } & WithMessage);

interface WithMessage {
  /** For people; undefined if the component gave no message or an empty one. */
  readonly message?: string;
}

interface WithOutputs {
  /**
   * A merge patch of the entry's `status.outputs`. Its first level names components. If it changes a path that the component does not own,
   * the run ends as Failed. Untrusted.
   */
  readonly outputs?: Readonly<Record<string, unknown>>;
}

/**
 * Maximum length of a stored message, in characters. A longer message is truncated; a message of more than 65,536 characters makes the
 * outcome invalid.
 */
export const maxMessage = 1024;

/** Delay after the outcome Progressing if the component names no time, in seconds. */
export const defaultRequeueSeconds = 15;

/**
 * Maximum length of a value for `equals`, in characters of its JSON. The limit exists because the status of the entry contains the value.
 */
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

/** The run that the outcome must belong to. */
export interface ExpectedRun {
  readonly id: string;
  readonly operation: Operation;
}

/**
 * Reads an outcome from the parsed body of an answer or a report. The body is untrusted. If it contains `run`, that must be the ID of the
 * expected run. The outcome must be valid for the operation. Never throws.
 */
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

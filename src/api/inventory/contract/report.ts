import { type Static, Type } from 'typebox';
import { own } from '../../../kit/json-value.ts';
import { type Read, readBySchema } from '../../schema/read.ts';
import { toStructural } from '../../schema/structural-schema.ts';
import { type ExpectedRun, type Outcome, readOutcome } from './outcome.ts';

/** `leaseSeconds`: until the next report is due; default: that of the registration. */
type Report =
  | { readonly kind: 'heartbeat'; readonly leaseSeconds: number | undefined }
  | { readonly kind: 'outcome'; readonly outcome: Outcome };

/** The answer to a heartbeat. */
export interface RunExtension {
  /** How long the run may continue without another report, from 1. */
  readonly leaseSeconds: number;
  /** Replaces a token that is about to expire. `expires`: RFC 3339. */
  readonly auth?: { readonly token: string; readonly expires: string };
}

const leaseSeconds = Type.Optional(Type.Integer({ minimum: 1, maximum: 3600 }));
const heartbeat = Type.Object({ run: Type.String({ maxLength: 256 }), heartbeat: Type.Object({ leaseSeconds }) });
const accepted = Type.Object({ leaseSeconds });

const structuralSchemas = {
  heartbeat: toStructural(heartbeat, 'heartbeat'),
  accepted: toStructural(accepted, 'accepted'),
};

/** `run` must be the expected one's ID. The body is untrusted. Never throws. */
export function readReport(body: unknown, expected: ExpectedRun): Read<Report> {
  if (own(body, 'run') !== expected.id) {
    return { ok: false, errors: [{ field: 'run', message: `is not the ID of this run; send ${expected.id}` }] };
  }
  if (own(body, 'heartbeat') === undefined) {
    if (own(body, 'outcome') === undefined || own(body, 'outcome') === null) {
      const example = `{"run": "${expected.id}", "heartbeat": {"leaseSeconds": 60}}`;
      const message = `is required, unless the report is a heartbeat; send a heartbeat as ${example}`;
      return { ok: false, errors: [{ field: 'outcome', message }] };
    }
    const outcome = readOutcome(body, expected);
    return outcome.ok ? { ok: true, value: { kind: 'outcome', outcome: outcome.value } } : outcome;
  }
  if (own(body, 'outcome') !== undefined) {
    return {
      ok: false,
      errors: [{ field: 'heartbeat', message: 'must not be set together with an outcome; send one of them' }],
    };
  }
  const read = readBySchema<Static<typeof heartbeat>>(structuralSchemas.heartbeat, body, '');
  return read.ok ? { ok: true, value: { kind: 'heartbeat', leaseSeconds: read.value.heartbeat.leaseSeconds } } : read;
}

/** The body of a 202. Rejects an outcome, which would otherwise have no effect. */
export function readAccepted(body: unknown): Read<Static<typeof accepted>> {
  // As in the schemas, null counts as absent.
  if ((own(body, 'outcome') ?? undefined) !== undefined) {
    const message =
      'must not be in an answer 202, after which the component reports later; answer 200 with the outcome';
    return { ok: false, errors: [{ field: 'outcome', message }] };
  }
  return readBySchema(structuralSchemas.accepted, body, '');
}

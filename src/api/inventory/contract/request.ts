import { type Static, Type } from 'typebox';
import { listOf, time } from '../../schema/fields.ts';
import { type Read, readBySchema } from '../../schema/read.ts';
import { toStructural } from '../../schema/structural-schema.ts';
import { maxReasons } from '../reconcile-run.ts';

/** The path below an endpoint that runs are asked for at. */
export const reconcilePath = '/v1/reconcile';
/** The path below the callback URL that a run reports to; its id follows. */
export const callbackPath = '/v1/runs/';

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const url = text(2048);

/**
 * The body of `POST /v1/reconcile`: how to reach the entry, and nothing of what it holds. A component believes the addresses in it only
 * if they are those of its own configuration, and believes any of it only after it has checked who calls.
 */
const reconcileRequest = Type.Object({
  protocol: Type.Union([Type.Literal('v1')]),
  run: Type.Object({
    /** To be given back in every answer and report. */
    id: text(256),
    seq: Type.Integer({ minimum: 1 }),
    /** Runs in a row that were to be retried before this one. */
    attempt: Type.Integer({ minimum: 0 }),
    /** When an answer is no longer waited for; a run that goes on after it has to say 202 before. */
    deadline: time(''),
    /** Why, such as `InputChanged:/status/outputs/network/vnetName`. */
    reasons: listOf(Type.String({ maxLength: 316 }), maxReasons),
  }),
  operation: Type.Union([Type.Literal('reconcile'), Type.Literal('delete')]),
  component: text(63),
  entry: Type.Object({
    url,
    /** Its uid. */
    id: text(128),
    /** Of the version whose inputs the run was started for, or an older one. */
    resourceVersion: text(128),
  }),
  auth: Type.Object({
    /** Good for this entry alone, and for writing only while the run lasts. */
    token: text(16_384),
    expires: time(''),
    /** PEM; absent: the public authorities. */
    ca: Type.Optional(Type.String({ maxLength: 131_072 })),
  }),
  /** Where heartbeats and the outcome of a run that was answered with 202 go. */
  callback: url,
});

export type ReconcileRequest = Static<typeof reconcileRequest>;

const structural = toStructural(reconcileRequest, 'request');

/** Reads a body that may come from anybody, once it is parsed. Fields of a later release are left out. Never throws. */
export function readReconcileRequest(body: unknown): Read<ReconcileRequest> {
  return readBySchema<ReconcileRequest>(structural, body, '');
}

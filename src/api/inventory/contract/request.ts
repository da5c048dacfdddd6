import { type Static, Type } from 'typebox';
import { listOf, time } from '../../schema/fields.ts';
import { type Read, readBySchema } from '../../schema/read.ts';
import { toStructural } from '../../schema/structural-schema.ts';
import { maxReasons } from '../reconcile-run.ts';

/** Below the endpoint of a component. The server posts runs there. */
export const reconcilePath = '/v1/reconcile';
/** Below the callback URL. The run ID follows it. */
export const callbackPath = '/v1/runs/';

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const url = text(2048);

const reconcileRequest = Type.Object({
  protocol: Type.Union([Type.Literal('v1')]),
  run: Type.Object({
    /** Every report must contain it; an answer may, and then it must match. */
    id: text(256),
    /** From 1, for this component and entry. */
    seq: Type.Integer({ minimum: 1 }),
    /** Retry outcomes since the last Done or change of inputs; else, refused calls in a row. */
    attempt: Type.Integer({ minimum: 0 }),
    /** Before it, the component must answer: the outcome, or 202 to continue asynchronously. */
    deadline: time(''),
    /** Such as `InputChanged:/status/outputs/network/vnetName`. */
    reasons: listOf(Type.String({ maxLength: 316 }), maxReasons),
  }),
  operation: Type.Union([Type.Literal('reconcile'), Type.Literal('delete')]),
  component: text(63),
  entry: Type.Object({
    /** Of the entry, at the API server. */
    url,
    /** UID of the entry. */
    id: text(128),
    /** From the server's watch; the API server may already have a later version. */
    resourceVersion: text(128),
  }),
  auth: Type.Object({
    /**
     * Writes the entry's status only during the run. Reads the entry and the allowed Secrets, and
     * for its producer writes the kubeconfig Secret, until it expires.
     */
    token: text(16_384),
    expires: time(''),
    /** PEM of the API server's CA. If absent, the component uses the public CAs. */
    ca: Type.Optional(Type.String({ maxLength: 131_072 })),
  }),
  /** For heartbeats and the outcome, after a 202. */
  callback: url,
});

/**
 * The body of `POST /v1/reconcile`: the address of the entry, not its content. A component must
 * first authenticate the caller, and reject addresses that differ from its configuration.
 */
export type ReconcileRequest = Static<typeof reconcileRequest>;

const structuralSchema = toStructural(reconcileRequest, 'request');

/** The body is untrusted. Drops unknown fields. Never throws. */
export function readReconcileRequest(body: unknown): Read<ReconcileRequest> {
  return readBySchema<ReconcileRequest>(structuralSchema, body, '');
}

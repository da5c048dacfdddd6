import { type Static, Type } from 'typebox';
import { listOf, time } from '../../schema/fields.ts';
import { type Read, readBySchema } from '../../schema/read.ts';
import { toStructural } from '../../schema/structural-schema.ts';
import { maxReasons } from '../reconcile-run.ts';

/** Path below the endpoint of a component. The server posts runs there. */
export const reconcilePath = '/v1/reconcile';
/** Path below the callback URL. The run ID follows it. */
export const callbackPath = '/v1/runs/';

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const url = text(2048);

const reconcileRequest = Type.Object({
  protocol: Type.Union([Type.Literal('v1')]),
  run: Type.Object({
    /** ID of the run. Every report must contain it. In an answer it is optional, and must match. */
    id: text(256),
    /** Number of the run, from 1, for this component and entry. */
    seq: Type.Integer({ minimum: 1 }),
    /**
     * Number of Retry outcomes since the last Done, or since the first run with these inputs. After calls that the component did not
     * accept: the number of those calls in a row.
     */
    attempt: Type.Integer({ minimum: 0 }),
    /** Deadline of the call. The component must answer before it: with the outcome, or with 202 to continue asynchronously. */
    deadline: time(''),
    /** Reasons for the run, such as `InputChanged:/status/outputs/network/vnetName`. */
    reasons: listOf(Type.String({ maxLength: 316 }), maxReasons),
  }),
  operation: Type.Union([Type.Literal('reconcile'), Type.Literal('delete')]),
  /** Name of the component, as in its registration. */
  component: text(63),
  entry: Type.Object({
    /** URL of the entry at the API server. */
    url,
    /** UID of the entry. */
    id: text(128),
    /** resourceVersion of the entry in the server's watch at the call. The API server may already have a later version. */
    resourceVersion: text(128),
  }),
  auth: Type.Object({
    /**
     * Token for this entry and the Secrets that the registration allows. It can write the entry's status only during the run. Until it
     * expires, it can read the entry and these Secrets, and the token of the kubeconfig's producer can write the kubeconfig Secret.
     */
    token: text(16_384),
    /** Time at which the token expires. */
    expires: time(''),
    /** PEM of the API server's CA. If absent, the component uses the public CAs. */
    ca: Type.Optional(Type.String({ maxLength: 131_072 })),
  }),
  /** After a 202, the component posts its heartbeats and the outcome to this URL. */
  callback: url,
});

/**
 * The body of `POST /v1/reconcile`. It contains the address of the entry, not its content. A component must first authenticate the caller,
 * and must reject addresses that differ from its configuration.
 */
export type ReconcileRequest = Static<typeof reconcileRequest>;

const structuralSchema = toStructural(reconcileRequest, 'request');

/** Reads a parsed request body. The body is untrusted. Unknown fields are dropped. Never throws. */
export function readReconcileRequest(body: unknown): Read<ReconcileRequest> {
  return readBySchema<ReconcileRequest>(structuralSchema, body, '');
}

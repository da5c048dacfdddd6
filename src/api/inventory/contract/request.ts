import type { Operation } from '../reconcile-run.ts';

/** Below the endpoint of a component. The server posts runs there. */
export const reconcilePath = '/v1/reconcile';
/** Below the callback URL. The run ID follows it. */
export const callbackPath = '/v1/runs/';

/**
 * The body of `POST /v1/reconcile`: the address of the entry, not its content. A component must
 * first authenticate the caller, and reject addresses that differ from its configuration.
 */
export interface ReconcileRequest {
  readonly protocol: 'v1';
  readonly run: {
    /** Every report must contain it; an answer may, and then it must match. */
    readonly id: string;
    /** From 1, for this component and entry. */
    readonly seq: number;
    /** Retry outcomes since the last Done or change of inputs; else, refused calls in a row. */
    readonly attempt: number;
    /** RFC 3339. Before it, the component must answer: the outcome, or 202 to continue. */
    readonly deadline: string;
    /** Such as `InputChanged:/status/outputs/network/vnetName`. */
    readonly reasons: readonly string[];
  };
  readonly operation: Operation;
  readonly component: string;
  readonly entry: {
    /** Of the entry, at the API server. */
    readonly url: string;
    /** UID of the entry. */
    readonly id: string;
    /** From the server's watch; the API server may already have a later version. */
    readonly resourceVersion: string;
  };
  readonly auth: {
    /**
     * Writes the entry's status only during the run. Reads the entry and the allowed Secrets, and
     * for its producer writes the kubeconfig Secret, until it expires.
     */
    readonly token: string;
    /** RFC 3339. */
    readonly expires: string;
    /** PEM of the API server's CA. If absent, the component uses the public CAs. */
    readonly ca?: string;
  };
  /** For heartbeats and the outcome, after a 202. */
  readonly callback: string;
}

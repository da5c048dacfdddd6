import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import type { Registration } from '../registration.ts';

/** What came of a call. */
export type Reply =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  /** It goes on, and reports to the callback; undefined: for as long as the registration says. */
  | { readonly kind: 'accepted'; readonly leaseMs: number | undefined }
  /** It certainly has not begun: 429, 503, or no connection. */
  | {
      readonly kind: 'notAccepted';
      readonly code: 'Busy' | 'Unreachable';
      readonly message: string;
      readonly retryAfterMs?: number;
    }
  /** It was not called, for a reason of our own: that says nothing of its endpoint. */
  | { readonly kind: 'notCalled'; readonly message: string; readonly retryAfterMs?: number }
  /** It may have happened, and nothing can be made of it. */
  | { readonly kind: 'broken'; readonly code: BrokenCode; readonly message: string };

/** Stable: in records, metrics and logs. */
export type BrokenCode =
  | 'Timeout'
  | 'Cut'
  | 'TooLarge'
  | 'NotJson'
  | 'InvalidOutcome'
  | 'WrongRun'
  | 'Refused'
  | 'UnexpectedStatus'
  | 'Crashed';

/** Calls components, over HTTP or in this process. */
export interface ComponentClient {
  /** Ends within the registration's timeout. Rejects only when `signal` aborts. */
  invoke(registration: Registration, request: ReconcileRequest, signal: AbortSignal): Promise<Reply>;
}

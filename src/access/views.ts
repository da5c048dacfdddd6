import type { LabelSelector } from '../api/object.ts';
import type { Projected } from '../kube/store.ts';

/** What the access half keeps of a Pod. */
export interface PodView extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly phase: string;
  readonly ready: boolean;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
  /** Why it is not ready, in one line, for conditions; empty when ready. */
  readonly waiting: string;
}

/** What the access half keeps of a workload that templates point to. */
export interface WorkloadView extends Projected {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector | undefined;
  /** The PodTemplateSpec as the API gave it; treated as hostile, never changed in place. */
  readonly podTemplate: Readonly<Record<string, unknown>>;
}

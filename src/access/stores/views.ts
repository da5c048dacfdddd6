import type { ExecAccessRequestSpec } from '../../api/access/exec-access.ts';
import type { Grant } from '../../api/access/grant.ts';
import type { PodAccessRequestSpec } from '../../api/access/pod-access.ts';
import type { RequestChild } from '../../api/access/status.ts';
import type { Condition, LabelSelector } from '../../api/object.ts';
import type { Projected } from '../../kube/store.ts';

/** The request that an object was made for. */
export interface MadeFor {
  readonly uid: string;
  /** Absent once the request was deleted with `Orphan`. */
  readonly owner?: { readonly kind: string; readonly name: string };
}

/** A Role or RoleBinding of ours. */
export interface ChildView extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly madeFor: MadeFor;
  /** Is on its way out and gives nothing any more, whoever holds it: there is nothing left to close. */
  readonly leaving: boolean;
}

/** What the access half keeps of a Pod. */
export interface PodView extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Without `kubectl.kubernetes.io/last-applied-configuration`, which would be most of the memory. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly phase: string;
  readonly ready: boolean;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
  /** Is being deleted, with no more time to end in than we give: there is nothing left to close. */
  readonly leaving: boolean;
  /** Set when it is one of ours. */
  readonly madeFor?: MadeFor;
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

/** An object that acts on pods by their labels. */
export interface SelectorView extends Projected {
  readonly kind: 'Service' | 'PodDisruptionBudget' | 'NetworkPolicy';
  readonly namespace: string;
  readonly name: string;
  readonly selector: LabelSelector | undefined;
}

/** A PodAccessTemplate or ExecAccessTemplate. */
export interface TemplateView<Spec> extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly generation: number;
  readonly spec: Spec;
  readonly conditions: readonly Condition[];
  readonly ready: boolean | undefined;
  /** Epoch ms. */
  readonly createdAtMs: number;
  /** The signature of `spec.author` under a later key than its own; undefined when there is none. */
  readonly authorSignature: string | undefined;
}

export type RequestSpec = PodAccessRequestSpec | ExecAccessRequestSpec;

/** A PodAccessRequest or ExecAccessRequest. */
export interface RequestView extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly generation: number;
  /** Epoch ms. */
  readonly createdAtMs: number;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  /** Somebody gave the access back; known even of a spec that is broken elsewhere. */
  readonly revoked: boolean;
  readonly spec: RequestSpec;
  readonly grant: Grant | undefined;
  readonly children: readonly RequestChild[];
  readonly conditions: readonly Condition[];
  readonly ready: boolean;
}

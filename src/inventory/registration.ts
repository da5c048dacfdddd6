import type { ComponentReconciler } from '../api/inventory/component-reconciler.ts';
import { outputsOf } from '../api/inventory/names.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';

type Spec = ComponentReconciler['spec'];

/** A registered component with defaults and implied values filled in, durations in milliseconds. */
export interface Registration extends Readonly<Pick<Spec, 'endpoint' | 'maxConcurrent'>> {
  readonly name: string;
  /** `metadata.generation`, part of the input digest: a new one causes a run for each entry. */
  readonly generation: number;
  /** PEM of the CA for this endpoint. The API requires it for HTTPS. */
  readonly caBundle: string | undefined;
  readonly modes: Readonly<Spec['modes']>;
  /** Whether the label selector matches an entry. An invalid selector matches none. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  /**
   * The declared reads, plus the component's `config` and `enabled`, `/spec/mode`, and, for
   * `kubeconfig: read`, the version of the kubeconfig.
   */
  readonly reads: readonly JsonPointer[];
  readonly writes: readonly JsonPointer[];
  /** `produce` if the component owns a path within `/status/outputs/kubeconfig`. */
  readonly kubeconfig: 'none' | 'read' | 'produce';
  readonly remoteWatches: Readonly<Spec['remoteWatches']>;
  /** From Done to the next run without a trigger, before jitter; after NotReady, 10 min at most. */
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Maximum time between reports of an asynchronous run, unless the component asks for another. */
  readonly heartbeatTimeoutMs: number;
  /** Maximum duration of an asynchronous run; heartbeats do not extend it. */
  readonly maxRunMs: number;
  /** Bounds of the random delay after Retry: of the first delay, and of every delay. */
  readonly retry: { readonly baseMs: number; readonly capMs: number };
  /** After this time in NotReady, `drawbridge_inventory_notready_entries` counts the entry. */
  readonly notReadyAlertAfterMs: number;
}

/** Stands in for an abandoned, unregistered component while its outputs and record are removed. */
export const standInRegistration = (name: string): Registration => ({
  name,
  generation: 0,
  endpoint: {},
  caBundle: undefined,
  modes: [],
  selects: () => false,
  reads: [],
  writes: [outputsOf(name)],
  kubeconfig: 'none',
  remoteWatches: [],
  intervalMs: 0,
  timeoutMs: 0,
  heartbeatTimeoutMs: 0,
  maxRunMs: 0,
  maxConcurrent: 0,
  retry: { baseMs: 0, capMs: 0 },
  notReadyAlertAfterMs: 0,
});

import type { ComponentReconciler } from '../api/inventory/component-reconciler.ts';
import { outputsOf } from '../api/inventory/names.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';

type Spec = ComponentReconciler['spec'];

/** A registered component with defaults and implied values filled in, and durations in milliseconds. */
export interface Registration extends Readonly<Pick<Spec, 'endpoint' | 'maxConcurrent'>> {
  readonly name: string;
  /** `metadata.generation`. It is part of the input digest, so a new generation causes a run for each entry of the component. */
  readonly generation: number;
  /** PEM of the CA that the server trusts for this endpoint. The API requires it for HTTPS endpoints; other endpoints need none. */
  readonly caBundle: string | undefined;
  readonly modes: Readonly<Spec['modes']>;
  /** Whether the label selector matches the labels of an entry. False for all labels if the selector is invalid. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  /**
   * The declared reads and the implied ones: the component's `config` and `enabled`, and `/spec/mode`. If `kubeconfig` is `read`, also the
   * version of the kubeconfig.
   */
  readonly reads: readonly JsonPointer[];
  /** Paths that the component owns. */
  readonly writes: readonly JsonPointer[];
  /** `produce` if the component owns `/status/outputs/kubeconfig` or a path below it; otherwise the value of `spec.kubeconfig`. */
  readonly kubeconfig: 'none' | 'read' | 'produce';
  readonly remoteWatches: Readonly<Spec['remoteWatches']>;
  /**
   * Time from a run that ended with Done to the next run if nothing triggers one earlier, before jitter. After NotReady: this time or 10
   * minutes, whichever is shorter.
   */
  readonly intervalMs: number;
  /** Timeout of a call. */
  readonly timeoutMs: number;
  /** Maximum time between reports of an asynchronous run, unless the component names another. */
  readonly heartbeatTimeoutMs: number;
  /** Maximum duration of an asynchronous run, however often heartbeats extend it. */
  readonly maxRunMs: number;
  /** Bounds of the random delay after Retry, milliseconds: of the first delay, and of every delay. */
  readonly retry: { readonly baseMs: number; readonly capMs: number };
  /** Time in NotReady after which `drawbridge_inventory_notready_entries` counts the entry. Has no effect on runs. */
  readonly notReadyAlertAfterMs: number;
}

/**
 * Stands in for the registration of an abandoned component that is not registered, while the server removes its outputs and its record.
 * Selects no entry.
 */
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

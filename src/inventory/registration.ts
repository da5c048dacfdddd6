import type { ComponentReconciler } from '../api/inventory/component-reconciler.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';

type Spec = ComponentReconciler['spec'];

/** A registered component with defaults and implied values filled in, and durations in milliseconds. */
export interface Registration extends Readonly<Pick<Spec, 'endpoint' | 'maxConcurrent'>> {
  readonly name: string;
  readonly generation: number;
  /** PEM of the CA that the server trusts for this endpoint. The API requires it for HTTPS endpoints. */
  readonly caBundle: string | undefined;
  readonly modes: Readonly<Spec['modes']>;
  /** Whether the label selector matches the labels of an entry. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  /**
   * The declared reads and the implied ones: the component's `config` and `enabled`, and `/spec/mode`. If the component may read the
   * kubeconfig, also its version.
   */
  readonly reads: readonly JsonPointer[];
  /** Paths that the component owns. */
  readonly writes: readonly JsonPointer[];
  readonly kubeconfig: 'none' | 'read' | 'produce';
  readonly remoteWatches: Readonly<Spec['remoteWatches']>;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly leaseMs: number;
  readonly maxRunMs: number;
  readonly retry: { readonly baseMs: number; readonly capMs: number };
  readonly notReadyAlertAfterMs: number;
}

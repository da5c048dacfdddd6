import type { ComponentReconciler } from '../api/inventory/component-reconciler.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';

type Spec = ComponentReconciler['spec'];

/** A registered component, ready for use: defaults and what is implied filled in, durations in milliseconds. */
export interface Registration extends Readonly<Pick<Spec, 'endpoint' | 'maxConcurrent'>> {
  readonly name: string;
  readonly generation: number;
  /** PEM; undefined for what is not called by HTTPS. */
  readonly caBundle: string | undefined;
  readonly modes: Readonly<Spec['modes']>;
  /** By the labels of an entry. */
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  /**
   * What was declared, and what every component reads: its `config` and `enabled`, `/spec/mode`, and the version of the kubeconfig
   * where it may read that.
   */
  readonly reads: readonly JsonPointer[];
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

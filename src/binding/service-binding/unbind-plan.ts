import { unbindPolicyAnnotation } from '../../api/binding/names.ts';
import { quote } from '../../kit/errors.ts';
import type { BindingView } from '../stores/consumer-stores.ts';

/** The state of an APIServiceBinding that is being deleted. */
export interface UnbindFacts {
  readonly binding: BindingView;
  /** The CustomResourceDefinitions that the binding owns. */
  readonly crds: readonly BoundCrdState[];
  /** `noSession`: no session serves the binding. `connecting`: the session's stores are not synced. `synced`: they are. */
  readonly provider: 'noSession' | 'connecting' | 'synced';
  /** Number of objects and copies that the unbinding waits for; Infinity while that is not known. */
  readonly remaining: number;
  /** False while a syncer that must delete copies has not started. True while the session's stores are not synced. */
  readonly draining: boolean;
}

export interface BoundCrdState {
  readonly name: string;
  /**
   * `exported`: the default while the session's stores are not synced. `withoutSchema`: the export is not valid or only missing from the
   * store, or the BoundSchema is missing or has another scope. `unexported`: the export does not name it, or a read finds no export.
   */
  readonly exportState: 'exported' | 'withoutSchema' | 'unexported';
  /** Whether a syncer runs for its objects. */
  readonly syncing: boolean;
}

export type UnbindStep =
  /** No definition is left, and no copy to wait for: remove the finalizer. */
  | { readonly kind: 'finish' }
  | { readonly kind: 'wait'; readonly blocked: boolean; readonly message: string }
  /** Delete the definitions and with them the objects. Objects of `release` lose our finalizer first, and their copies stay. */
  | {
      readonly kind: 'delete';
      readonly release: readonly string[];
      readonly blocked: boolean;
      readonly message: string;
    };

export type UnbindPolicy = 'Delete' | 'Orphan';

/**
 * Default `Delete`. Undefined if the annotation has another value: a typing error must not decide whether the provider's objects are
 * deleted.
 */
export function unbindPolicy({ annotations }: BindingView): UnbindPolicy | undefined {
  const value = annotations[unbindPolicyAnnotation] ?? 'Delete';
  return value === 'Delete' || value === 'Orphan' ? value : undefined;
}

/** The next step for a binding that is being deleted. */
export function planUnbind({ binding, crds, provider, remaining, draining }: UnbindFacts): UnbindStep {
  const policy = unbindPolicy(binding);
  if (crds.length === 0) {
    if (policy !== 'Orphan' && !draining) return waiting('waiting for the syncers to list copies');
    return remaining > 0
      ? waiting(`waiting for the provider to delete the copies of ${count(remaining)}${orOrphan(remaining)}`)
      : { kind: 'finish' };
  }
  if (policy === undefined) {
    const found = quote(binding.annotations[unbindPolicyAnnotation] ?? '');
    return blocked(
      `the annotation ${unbindPolicyAnnotation} is ${found}; allowed are Delete and Orphan; set one of them`,
    );
  }
  const toRelease = crds.filter(({ exportState }) => policy === 'Orphan' || exportState === 'unexported');
  if (toRelease.some(({ syncing }) => syncing)) return waiting('waiting for the syncers to stop');
  const toDrain = crds.filter((crd) => !toRelease.includes(crd));
  if (toDrain.length > 0 && provider !== 'synced') {
    const why =
      provider === 'noSession'
        ? 'there is no valid kubeconfig for the provider'
        : 'the provider has not listed its objects yet';
    return blocked(`${why}, so the copies of ${namesOf(toDrain)} there cannot be deleted; ${recoveryHint}`);
  }
  const stuck = toDrain.filter(({ exportState }) => exportState === 'withoutSchema');
  const step = { kind: 'delete' as const, release: toRelease.map(({ name }) => name), blocked: stuck.length > 0 };
  if (step.blocked) {
    const message = `the provider has no matching BoundSchema ${namesOf(stuck)}, so the copies there cannot be deleted; ${recoveryHint}`;
    return { ...step, message };
  }
  const objects =
    remaining > 0 ? `; the provider must delete the copies of ${count(remaining)}${orOrphan(remaining)}` : '';
  return { ...step, message: `waiting for CustomResourceDefinitions to be deleted: ${namesOf(crds)}${objects}` };
}

const orphanHint = `to leave the copies there, set the annotation ${unbindPolicyAnnotation} to Orphan`;
const recoveryHint = `unbinding continues once that is corrected; ${orphanHint}`;
/** A finalizer in the provider may keep a copy forever, so the message names the other policy. */
const orOrphan = (remaining: number): string => (remaining === Number.POSITIVE_INFINITY ? '' : `; ${orphanHint}`);

const waiting = (message: string): UnbindStep => ({ kind: 'wait', blocked: false, message });
const blocked = (message: string): UnbindStep => ({ kind: 'wait', blocked: true, message });
const namesOf = (crds: readonly BoundCrdState[]): string => crds.map(({ name }) => name).join(', ');

function count(objects: number): string {
  if (objects === Number.POSITIVE_INFINITY) return 'objects (not counted yet)';
  return objects === 1 ? '1 object' : `${objects} objects`;
}

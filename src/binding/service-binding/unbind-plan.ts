import { unbindPolicyAnnotation } from '../../api/binding/names.ts';
import { quote } from '../../kit/errors.ts';
import type { BindingView } from '../stores/consumer-stores.ts';

/** What an APIServiceBinding that is being deleted leaves behind. */
export interface UnbindFacts {
  readonly binding: BindingView;
  /** The CustomResourceDefinitions that were made for it and are still there. */
  readonly crds: readonly BoundCrdState[];
  /** `away`: no session serves it; `connecting`: one does, but the provider's objects are not known. */
  readonly provider: 'away' | 'connecting' | 'known';
  /** How many of its objects wait for their copies to go; Infinity while that is not known. */
  readonly remaining: number;
  /** False while something that is to delete copies has not begun. */
  readonly draining: boolean;
}

export interface BoundCrdState {
  readonly name: string;
  /** What the provider has for it; `unexported` when it has told so itself. */
  readonly exportState: 'exported' | 'withoutSchema' | 'unexported';
  /** Whether anything works on its objects. */
  readonly syncing: boolean;
}

export type UnbindStep =
  /** Nothing is left: the binding may go. */
  | { readonly kind: 'finish' }
  | { readonly kind: 'wait'; readonly blocked: boolean; readonly message: string }
  /** The definitions go, and with them the objects. Those of `release` are freed of our finalizer first, and their copies stay. */
  | {
      readonly kind: 'delete';
      readonly release: readonly string[];
      readonly blocked: boolean;
      readonly message: string;
    };

export type UnbindPolicy = 'Delete' | 'Orphan';

/** Undefined when the annotation says something else: a slip of the pen must not decide what becomes of the provider's objects. */
export function unbindPolicy({ annotations }: BindingView): UnbindPolicy | undefined {
  const value = annotations[unbindPolicyAnnotation] ?? 'Delete';
  return value === 'Delete' || value === 'Orphan' ? value : undefined;
}

export function planUnbind({ binding, crds, provider, remaining, draining }: UnbindFacts): UnbindStep {
  const policy = unbindPolicy(binding);
  if (crds.length === 0) {
    if (policy !== 'Orphan' && !draining) return waiting('waiting for the synchronisation to look for copies');
    return remaining > 0
      ? waiting(`waiting for ${count(remaining)} to go at the provider${orOrphan(remaining)}`)
      : { kind: 'finish' };
  }
  if (policy === undefined) {
    const found = quote(binding.annotations[unbindPolicyAnnotation] ?? '');
    return blocked(`the annotation ${unbindPolicyAnnotation} is ${found}; set it to Delete or Orphan`);
  }
  const released = crds.filter(({ exportState }) => policy === 'Orphan' || exportState === 'unexported');
  if (released.some(({ syncing }) => syncing)) return waiting('waiting for the synchronisation to stop');
  const drained = crds.filter((crd) => !released.includes(crd));
  if (drained.length > 0 && provider !== 'known') {
    const why = provider === 'away' ? 'no usable kubeconfig leads to the provider' : 'the provider cannot be reached';
    return blocked(`${why}, so the copies of ${namesOf(drained)} there cannot be deleted; ${wayOut}`);
  }
  const stuck = drained.filter(({ exportState }) => exportState === 'withoutSchema');
  const step = { kind: 'delete' as const, release: released.map(({ name }) => name), blocked: stuck.length > 0 };
  if (step.blocked) {
    const message = `the provider has no BoundSchema ${namesOf(stuck)} any more that fits, so the copies there cannot be deleted; ${wayOut}`;
    return { ...step, message };
  }
  const objects =
    remaining > 0 ? `; ${count(remaining)} wait for their copies at the provider to go${orOrphan(remaining)}` : '';
  return { ...step, message: `waiting for CustomResourceDefinitions to go: ${namesOf(crds)}${objects}` };
}

const orphan = `to leave the copies there, set the annotation ${unbindPolicyAnnotation} to Orphan`;
const wayOut = `it goes on once that is mended; ${orphan}`;
/** A finalizer of the provider's may keep a copy for ever. */
const orOrphan = (remaining: number): string => (remaining === Number.POSITIVE_INFINITY ? '' : `; ${orphan}`);

const waiting = (message: string): UnbindStep => ({ kind: 'wait', blocked: false, message });
const blocked = (message: string): UnbindStep => ({ kind: 'wait', blocked: true, message });
const namesOf = (crds: readonly BoundCrdState[]): string => crds.map(({ name }) => name).join(', ');

function count(objects: number): string {
  if (objects === Number.POSITIVE_INFINITY) return 'objects that are being counted';
  return objects === 1 ? '1 object' : `${objects} objects`;
}

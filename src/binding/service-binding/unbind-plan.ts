import { bindConditions, unbindPolicyAnnotation } from '../../api/binding/names.ts';
import { keyOf } from '../../api/object.ts';
import { quote } from '../../kit/errors.ts';
import type { BindingView } from '../stores/consumer-stores.ts';

/** The input of `planUnbind`: the state of an APIServiceBinding that is being deleted, of its definitions, and of the provider. */
export interface UnbindFacts {
  readonly binding: BindingView;
  /** The CustomResourceDefinitions that the binding owns. */
  readonly crds: readonly BoundCrdState[];
  /**
   * `noSession`: no session serves the binding. `connecting`: the session's stores are not synced. `synced`: the session's stores are
   * synced.
   */
  readonly provider: 'noSession' | 'connecting' | 'synced';
  /**
   * Number of objects that the unbinding waits for: with the syncer finalizer, or with a copy to delete. Infinity until the syncers know it.
   */
  readonly remaining: number;
  /**
   * Whether all syncers that delete copies (mode `drain`) have started; until then, `remaining` may be too low. Also true while the
   * session's stores are not synced.
   */
  readonly drainSyncersRunning: boolean;
}

/** A CustomResourceDefinition of the binding. */
export interface BoundCrdState {
  readonly name: string;
  /**
   * `exported`: the export lists the resource, and its BoundSchema has the same scope; also the value while the session's stores are not
   * synced. `notExported`: a valid export does not list the resource, or a live read finds no export. `unverified`: no syncer can delete
   * the copies, because the export is not valid or is missing only from the store, or because the BoundSchema is missing or has another
   * scope.
   */
  readonly exportState: 'exported' | 'unverified' | 'notExported';
  /** Whether a syncer runs for its objects. */
  readonly syncing: boolean;
}

/** What a binding that is being deleted waits for. */
export interface UnbindProgress {
  /** Whether a user or the provider may have to correct something. Condition Connected then has severity Warning. */
  readonly blocked: boolean;
  /** What the unbinding waits for, and, if it is blocked, what to correct. */
  readonly message: string;
}

/** The next step of an unbinding. */
export type UnbindStep =
  /** Remove the finalizer of the binding: no definition is left, and no copy to wait for. */
  | { readonly kind: 'finish' }
  /** Change no object, and report what the unbinding waits for. */
  | ({ readonly kind: 'wait' } & UnbindProgress)
  /** Delete the definitions, and with them their objects. */
  | ({
      readonly kind: 'delete';
      /** Names of definitions whose objects lose the syncer finalizer first, so that their copies stay in the provider. */
      readonly release: readonly string[];
    } & UnbindProgress);

/** What happens to the provider's copies when the binding is deleted: `Orphan` keeps them. */
export type UnbindPolicy = 'Delete' | 'Orphan';

/**
 * The policy in the binding's annotation; `Delete` if the annotation is absent. Undefined if the annotation has any other value, because a
 * typing error must not decide whether the provider's objects are deleted.
 */
export function unbindPolicy({ annotations }: BindingView): UnbindPolicy | undefined {
  const value = annotations[unbindPolicyAnnotation] ?? 'Delete';
  return value === 'Delete' || value === 'Orphan' ? value : undefined;
}

/** The next step for a binding that is being deleted. */
export function planUnbind({ binding, crds, provider, remaining, drainSyncersRunning }: UnbindFacts): UnbindStep {
  const policy = unbindPolicy(binding);
  if (crds.length === 0) {
    if (policy !== 'Orphan' && !drainSyncersRunning) return waiting('waiting for the syncers to start');
    return remaining > 0
      ? waiting(`waiting for the deletion of the copies of ${count(remaining)}${orOrphan(remaining, binding.name)}`)
      : { kind: 'finish' };
  }
  if (policy === undefined) {
    const found = quote(binding.annotations[unbindPolicyAnnotation] ?? '');
    return blocked(
      `the annotation ${unbindPolicyAnnotation} is ${found}; allowed are Delete, which deletes the copies in the provider, and Orphan, which leaves them there; set one of them, for example: kubectl annotate apiservicebinding ${binding.name} --overwrite ${unbindPolicyAnnotation}=Orphan`,
    );
  }
  const toRelease = crds.filter(({ exportState }) => policy === 'Orphan' || exportState === 'notExported');
  if (toRelease.some(({ syncing }) => syncing)) return waiting('waiting for the syncers to stop');
  const toDrain = crds.filter((crd) => !toRelease.includes(crd));
  if (toDrain.length > 0 && provider !== 'synced') {
    const why =
      provider === 'noSession'
        ? 'there is no valid kubeconfig for the provider'
        : 'the server has not listed the objects of the provider yet';
    const remedy =
      provider === 'noSession'
        ? `correct the Secret ${keyOf(binding.secretRef)}; see the condition ${bindConditions.secretValid}`
        : `if that lasts, see the condition ${bindConditions.informersSynced}`;
    return blocked(
      `${why}, so the copies of ${namesOf(toDrain)} there cannot be deleted; ${remedy}; ${orphanHint(binding.name)}`,
    );
  }
  const stuck = toDrain.filter(({ exportState }) => exportState === 'unverified');
  const step = { kind: 'delete' as const, release: toRelease.map(({ name }) => name), blocked: stuck.length > 0 };
  if (step.blocked) {
    const message = `the provider has no valid APIServiceExport ${binding.name} with a matching BoundSchema for ${namesOf(stuck)}, so the copies there cannot be deleted; ask the provider to restore or correct this export and its BoundSchema; ${orphanHint(binding.name)}`;
    return { ...step, message };
  }
  const objects =
    remaining > 0
      ? `; that waits for the deletion of the copies of ${count(remaining)}${orOrphan(remaining, binding.name)}`
      : '';
  return { ...step, message: `waiting for CustomResourceDefinitions to be deleted: ${namesOf(crds)}${objects}` };
}

const orphanHint = (binding: string): string =>
  `to leave the copies there: kubectl annotate apiservicebinding ${binding} --overwrite ${unbindPolicyAnnotation}=Orphan`;
/** A finalizer in the provider may keep a copy forever, so the message mentions the policy Orphan. */
const orOrphan = (remaining: number, binding: string): string =>
  remaining === Number.POSITIVE_INFINITY ? '' : `; ${orphanHint(binding)}`;

const waiting = (message: string): UnbindStep => ({ kind: 'wait', blocked: false, message });
const blocked = (message: string): UnbindStep => ({ kind: 'wait', blocked: true, message });
const namesOf = (crds: readonly BoundCrdState[]): string => crds.map(({ name }) => name).join(', ');

function count(objects: number): string {
  if (objects === Number.POSITIVE_INFINITY) return 'objects (not counted yet)';
  return objects === 1 ? '1 object' : `${objects} objects`;
}

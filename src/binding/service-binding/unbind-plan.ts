import { bindConditions, unbindPolicyAnnotation } from '../../api/binding/names.ts';
import { keyOf } from '../../api/object.ts';
import { quote } from '../../kit/errors.ts';
import type { BindingView } from '../stores/consumer-stores.ts';

/** The state of an APIServiceBinding that is being deleted. */
export interface UnbindFacts {
  readonly binding: BindingView;
  readonly crds: readonly BoundCrdState[];
  /** `noSession`: none serves the binding. `connecting`: as after a restart, without a failure. */
  readonly provider: 'noSession' | 'connecting' | 'unreachable' | 'synced';
  /** Objects with the syncer finalizer or a copy to delete; Infinity until known. */
  readonly remaining: number;
  /** Until all syncers in mode `drain` have started, `remaining` may be too low. */
  readonly drainSyncersRunning: boolean;
}

export interface BoundCrdState {
  readonly name: string;
  /**
   * `exported`: or not known yet. `notExported`: proven by a valid export or a live read.
   * `unverified`: without a valid export and a schema, no syncer can delete the copies.
   */
  readonly exportState: 'exported' | 'unverified' | 'notExported';
  readonly syncing: boolean;
}

export interface UnbindProgress {
  /** A user or the provider may have to correct something: severity Warning. */
  readonly blocked: boolean;
  /** What it waits for and, if blocked, what to correct. */
  readonly message: string;
}

export type UnbindStep =
  /** Remove the finalizer: no definition is left, and no copy to wait for. */
  | { readonly kind: 'finish' }
  | ({ readonly kind: 'wait' } & UnbindProgress)
  /** Delete the definitions, and with them their objects. */
  | ({
      readonly kind: 'delete';
      /** Their objects lose the syncer finalizer first, so that the copies stay. */
      readonly release: readonly string[];
    } & UnbindProgress);

/** For the provider's copies: `Orphan` keeps them. */
export type UnbindPolicy = 'Delete' | 'Orphan';

/** Undefined for an unknown value: a typing error must not decide what is deleted. */
export function unbindPolicy({ annotations }: BindingView): UnbindPolicy | undefined {
  const value = annotations[unbindPolicyAnnotation] ?? 'Delete';
  return value === 'Delete' || value === 'Orphan' ? value : undefined;
}

/**
 * The next step of a deletion.
 *
 *   CRDs left, Delete   `delete` them; objects go when a drain has deleted their copies
 *   CRDs left, Orphan   `delete` them; their objects are released first
 *   no CRD left         wait for drains and copies, then `finish`
 *
 * Blocked without the session that a drain needs, and with an unknown policy.
 */
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
  if (toDrain.length > 0 && provider === 'connecting')
    return waiting(`waiting for the lists of the provider, to delete the copies of ${namesOf(toDrain)} there`);
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
/** A finalizer in the provider may keep a copy forever, so the message offers Orphan. */
const orOrphan = (remaining: number, binding: string): string =>
  remaining === Number.POSITIVE_INFINITY ? '' : `; ${orphanHint(binding)}`;

const waiting = (message: string): UnbindStep => ({ kind: 'wait', blocked: false, message });
const blocked = (message: string): UnbindStep => ({ kind: 'wait', blocked: true, message });
const namesOf = (crds: readonly BoundCrdState[]): string => crds.map(({ name }) => name).join(', ');

function count(objects: number): string {
  if (objects === Number.POSITIVE_INFINITY) return 'objects (not counted yet)';
  return objects === 1 ? '1 object' : `${objects} objects`;
}

import { type ComponentReconciler, componentReconcilerKind } from '../../api/inventory/component-reconciler.ts';
import type { Condition, KubeObject } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { parseTime } from '../../kit/clock.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import type { Projected } from '../../kube/store.ts';
import { kubeconfigRole, readsOf, unusableField, writesOf } from '../policy/registration-rules.ts';
import type { Registration } from '../registration.ts';

export interface RegistrationView extends Projected {
  readonly registration: Registration;
  readonly spec: ComponentReconciler['spec'];
  /** Why a field of the spec cannot be used, besides `reads` and `writes`. */
  readonly problem: string | undefined;
  readonly conditions: readonly Condition[];
  /** Epoch milliseconds; 0 if unknown. */
  readonly createdMs: number;
}

/** Undefined if the ComponentReconciler is invalid. */
export function registrationView(object: KubeObject): RegistrationView | undefined {
  const read = readObject(componentReconcilerKind, object);
  if (!read.ok) return undefined;
  const { metadata, spec, status } = read.value;
  const { name, uid, resourceVersion, generation = 0 } = metadata;
  if (!uid || !resourceVersion) return undefined;
  const selector = compileSelector(spec.selector ?? {});
  const unusable = unusableField(spec);
  return {
    key: name,
    uid,
    resourceVersion,
    registration: {
      name,
      generation,
      endpoint: spec.endpoint,
      caBundle: spec.caBundle,
      modes: spec.modes,
      selects: 'error' in selector ? () => false : selector.matches,
      reads: readsOf(name, spec),
      writes: writesOf(name, spec),
      kubeconfig: kubeconfigRole(name, spec),
      remoteWatches: spec.remoteWatches,
      intervalMs: spec.intervalSeconds * 1000,
      timeoutMs: spec.timeoutSeconds * 1000,
      heartbeatTimeoutMs: spec.leaseSeconds * 1000,
      maxRunMs: spec.maxRunSeconds * 1000,
      maxConcurrent: spec.maxConcurrent,
      retry: { baseMs: spec.retry.baseSeconds * 1000, capMs: spec.retry.capSeconds * 1000 },
      notReadyAlertAfterMs: spec.notReadyAlertAfterSeconds * 1000,
    },
    spec,
    problem: unusable && `${unusable.field}: ${unusable.message}`,
    conditions: status?.conditions ?? [],
    createdMs: parseTime(metadata.creationTimestamp ?? '') ?? 0,
  };
}

import type { BindCondition } from '../../api/binding/condition.ts';
import { boundSchemaName, type GroupResource } from '../../api/binding/group-resource.ts';
import { apiServiceBindings, bindConditions, unbindFinalizer } from '../../api/binding/names.ts';
import type { PermissionClaim } from '../../api/binding/permission-claim.ts';
import { sameConditions } from '../../api/conditions.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { type BindConditionUpdate, findCondition, setConditionsAndReady } from '../conditions.ts';
import type { BindingView } from '../stores/consumer-stores.ts';

export interface BindingWriterDeps {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly clock: Clock;
}

/**
 * Each write has the uid and resourceVersion of the view that it was planned from, so that a stale
 * view writes nothing.
 */
export class BindingWriter {
  readonly #deps: BindingWriterDeps;

  constructor(deps: BindingWriterDeps) {
    this.#deps = deps;
  }

  /** Only differing fields. Ignores a conflict or a deletion, whose event enqueues the binding. */
  async writeStatus(
    binding: BindingView,
    updates: readonly BindConditionUpdate[],
    bound: BoundStatus,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock } = this.#deps;
    const status = bindingStatusPatch(binding, updates, bound, clock.now());
    if (!status) return;
    const { name, uid, resourceVersion } = binding;
    try {
      const patch = { metadata: { uid, resourceVersion }, status };
      const options = { subresource: 'status', signal };
      await client.mergePatch(apiServiceBindings, { name }, patch, options);
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return;
      throw error;
    }
    this.#recordEvent(binding, status);
  }

  /** Returns the binding with the finalizer. Rejects also with a conflict. */
  async ensureFinalizer(binding: BindingView, signal: AbortSignal): Promise<BindingView> {
    if (binding.finalizers.includes(unbindFinalizer)) return binding;
    return this.#writeFinalizers(binding, [...binding.finalizers, unbindFinalizer], signal);
  }

  /** Rejects also with a conflict. */
  async removeFinalizer(binding: BindingView, signal: AbortSignal): Promise<void> {
    const finalizers = binding.finalizers.filter((finalizer) => finalizer !== unbindFinalizer);
    if (finalizers.length < binding.finalizers.length) await this.#writeFinalizers(binding, finalizers, signal);
  }

  async #writeFinalizers(
    binding: BindingView,
    finalizers: readonly string[],
    signal: AbortSignal,
  ): Promise<BindingView> {
    const { name, uid, resourceVersion } = binding;
    const patch = { metadata: { uid, resourceVersion, finalizers } };
    const { metadata } = await this.#deps.client.mergePatch(apiServiceBindings, { name }, patch, { signal });
    return { ...binding, finalizers, resourceVersion: metadata.resourceVersion ?? '' };
  }

  /** If the status or reason of `Ready` has changed, or which watches are refused; not for Info. */
  #recordEvent({ name, uid, conditions: before }: BindingView, { conditions = [] }: StatusPatch): void {
    const oldReady = findCondition(before, bindConditions.ready);
    const newReady = findCondition(conditions, bindConditions.ready);
    if (!newReady) return;
    const isSame = oldReady?.status === newReady.status && oldReady.reason === newReady.reason;
    if (isSame && (newReady.reason !== 'WatchRefused' || oldReady.message === newReady.message)) return;
    const isReady = newReady.status === 'True';
    if (!isReady && newReady.severity === 'Info') return;
    this.#deps.events.record({
      regarding: regarding(apiServiceBindings, { name, uid }),
      type: isReady ? 'Normal' : 'Warning',
      reason: isReady ? 'Ready' : eventReason(newReady.reason),
      action: 'Bind',
      note: newReady.message ?? 'bound',
    });
  }
}

/** The reason of a condition; an Event allows only some. */
function eventReason(reason = ''): string {
  return /^[A-Z][A-Za-z0-9]{0,127}$/.test(reason) ? reason : 'NotReady';
}

/** Undefined: the field stays. An empty string or list removes it. */
export interface BoundStatus {
  readonly providerPrettyName?: string | undefined;
  readonly boundSchemas?: readonly GroupResource[] | undefined;
  readonly permissionClaims?: readonly PermissionClaim[] | undefined;
}

export interface StatusPatch {
  conditions?: BindCondition[];
  providerPrettyName?: string | null;
  boundSchemas?: readonly GroupResource[] | null;
  permissionClaims?: readonly PermissionClaim[] | null;
}

function bindingStatusPatch(
  binding: BindingView,
  updates: readonly BindConditionUpdate[],
  bound: BoundStatus,
  nowMs: number,
): StatusPatch | undefined {
  const patch: StatusPatch = {};
  const conditions = setConditionsAndReady(binding.conditions, updates, nowMs);
  if (!sameConditions(binding.conditions, conditions)) patch.conditions = conditions;
  const { providerPrettyName: name, boundSchemas, permissionClaims } = bound;
  if (name !== undefined && name !== (binding.providerPrettyName ?? '')) patch.providerPrettyName = name || null;
  if (boundSchemas && namesOf(boundSchemas) !== namesOf(binding.boundSchemas)) {
    patch.boundSchemas = orNull(boundSchemas.map(({ group, resource }) => ({ group, resource })));
  }
  if (permissionClaims && canonicalJson(permissionClaims) !== canonicalJson(binding.permissionClaims)) {
    patch.permissionClaims = orNull(permissionClaims);
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

const namesOf = (resources: readonly GroupResource[]): string => resources.map(boundSchemaName).sort().join(' ');

/** The schema allows no empty list. */
const orNull = <T>(list: readonly T[]): readonly T[] | null => (list.length > 0 ? list : null);

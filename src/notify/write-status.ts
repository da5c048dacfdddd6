import { type ConditionUpdate, mergeConditions } from '../api/conditions.ts';
import type { ProviderStatus } from '../api/notify/notification-provider.ts';
import type { Condition, KubeObject, Resource } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import { isConflict, isNotFound } from '../kube/errors.ts';
import type { ProviderView, SubscriptionView } from './stores.ts';

export interface Written {
  readonly ready?: Omit<ConditionUpdate<Condition>, 'type'> | undefined;
  readonly lastTest?: ProviderStatus['lastTest'];
}

/** Undefined if there is nothing to write, or the object does not exist any more. */
export async function writeStatus(
  { client, clock }: { readonly client: Pick<Client, 'mergePatch'>; readonly clock: Clock },
  resource: Resource,
  { namespace, name, uid, generation, status: { conditions: before = [] } = {} }: ProviderView | SubscriptionView,
  { ready, ...rest }: Written,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const updates = ready ? [{ type: 'Ready', ...ready }] : [];
  const conditions = mergeConditions(before, updates, clock.now(), { generation });
  if (conditions === before && rest.lastTest === undefined) return undefined;
  const patch = { metadata: { uid }, status: { conditions, ...rest } };
  try {
    return await client.mergePatch(resource, { namespace, name }, patch, { signal, subresource: 'status' });
  } catch (error) {
    // Another object has the name.
    if (isNotFound(error) || isConflict(error)) return undefined;
    throw error;
  }
}

import { accesses } from '../../api/access/kinds.ts';
import { requestLabel } from '../../api/access/names.ts';
import { pods, roleBindings, roles } from '../../api/resources.ts';
import { own } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';

/** No grant and no object of one, by consistent lists: this server has not decided anything yet. */
export async function isUntouched(client: Client, signal: AbortSignal): Promise<boolean> {
  for (const { request } of accesses) {
    const { items } = await client.list(request.resource, { signal });
    if (items.some((item) => own(own(item, 'status'), 'grant') !== undefined)) return false;
  }
  for (const resource of [pods, roles, roleBindings]) {
    const { items } = await client.list(resource, { labelSelector: requestLabel, signal });
    if (items.length > 0) return false;
  }
  return true;
}

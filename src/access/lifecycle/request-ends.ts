import type { ExtensionStatus } from '../../api/access/status.ts';
import { keyOf } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import type { Store } from '../../kube/store.ts';
import type { Extendable } from '../policy/extension-choice.ts';
import { accessEndMs, type RequestView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';

/** Epoch ms: `grant.startsAt`, else the creation of the request. */
export function accessStartMs({ grant, createdAtMs }: Pick<RequestView, 'grant' | 'createdAtMs'>): number {
  return parseTime(grant?.startsAt ?? '') ?? createdAtMs;
}

/** Granted or refused: all before one that waits. */
export function decidedExtensions({ grant, extensions }: RequestView): readonly ExtensionStatus[] {
  const waiting = extensions.findIndex(({ state }) => state === 'Pending');
  return grant ? extensions.slice(0, waiting < 0 ? extensions.length : waiting) : [];
}

/** Present even after the access has ended; undefined if `accessEndMs` is. */
export function extendableOf(request: RequestView, pods: Pick<Store<PodView>, 'get'>): Extendable | undefined {
  const endMs = accessEndMs(request);
  if (endMs === undefined) return undefined;
  const decided = decidedExtensions(request);
  return {
    startMs: accessStartMs(request),
    endMs,
    decided: decided.length,
    granted: decided.filter(({ state }) => state === 'Granted').length,
    emergency: request.spec.emergency === true,
    podEndMs: pods.get(keyOf({ namespace: request.namespace, name: request.grant?.pod.name ?? '' }))?.deadlineMs,
  };
}

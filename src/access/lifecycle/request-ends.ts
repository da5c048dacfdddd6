import type { ExtensionStatus } from '../../api/access/status.ts';
import { keyOf } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import type { Store } from '../../kube/store.ts';
import type { Extendable } from '../policy/extension-choice.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';

/** Epoch ms: `grant.startsAt`, else the creation of the request. */
export function accessStartMs({ grant, createdAtMs }: Pick<RequestView, 'grant' | 'createdAtMs'>): number {
  return parseTime(grant?.startsAt ?? '') ?? createdAtMs;
}

/** What verifies extensions and `status.ended`, by the keys that the signer has read. */
export type EndSigner = Pick<Signer, 'hasKeys' | 'isOurExtensionByCachedKeys' | 'isOurEndByCachedKeys'>;

/**
 * Epoch ms: by the last signed extension, the grant, or an earlier `status.ended`. Until the keys
 * are read, all count: the chart lets only the server write the status, and a deadline must not
 * wait for keys.
 */
export function accessEndMs(request: RequestView, signer: EndSigner): number | undefined {
  const { grant, extensions } = request;
  if (!grant) return undefined;
  const trusted = signer.hasKeys ? decidedExtensions(request, signer) : extensions;
  const endMs = trusted.reduce(
    (latestMs, { expiresAt }) => parseTime(expiresAt ?? '') ?? latestMs,
    parseTime(grant.expiresAt),
  );
  const endedMs = !signer.hasKeys || hasVerifiedEnd(request, signer) ? parseTime(request.ended?.at ?? '') : undefined;
  return endMs === undefined || endedMs === undefined ? endMs : Math.min(endMs, endedMs);
}

/** False until the server has read its keys. */
export const hasVerifiedEnd = (request: RequestView, signer: Pick<EndSigner, 'isOurEndByCachedKeys'>): boolean =>
  request.ended !== undefined && signer.isOurEndByCachedKeys(request, request.ended);

/** Granted or refused by this server: all before the first without a valid MAC. */
export function decidedExtensions(request: RequestView, signer: EndSigner): readonly ExtensionStatus[] {
  const { grant, extensions } = request;
  if (!grant) return [];
  const firstInvalid = extensions.findIndex(
    (extension, index) => !signer.isOurExtensionByCachedKeys(request, grant, index, extension),
  );
  return firstInvalid < 0 ? extensions : extensions.slice(0, firstInvalid);
}

/** Present even after the access has ended; undefined if `accessEndMs` is. */
export function extendableOf(
  request: RequestView,
  signer: EndSigner,
  pods: Pick<Store<PodView>, 'get'>,
): Extendable | undefined {
  const endMs = accessEndMs(request, signer);
  if (endMs === undefined) return undefined;
  const decided = decidedExtensions(request, signer);
  return {
    startMs: accessStartMs(request),
    endMs,
    decided: decided.length,
    granted: decided.filter(({ state }) => state === 'Granted').length,
    emergency: request.spec.emergency === true,
    podEndMs: pods.get(keyOf({ namespace: request.namespace, name: request.grant?.pod.name ?? '' }))?.deadlineMs,
  };
}

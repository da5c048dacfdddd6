import { podAccessRequests } from '../api/access/pod-access.ts';
import { type KubeObject, keyOf, type ObjectName, type Resource } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { type Clock, parseTime } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { Signer } from './signing/signer.ts';
import { type AccessStores, byPod, byUid } from './stores/access-stores.ts';
import { viewPod } from './stores/pod-view.ts';
import { viewRequest } from './stores/request-view.ts';
import type { PodView, RequestView } from './stores/views.ts';

export interface EnteredPodsDeps {
  readonly stores: Pick<AccessStores, 'pods' | 'podRequests' | 'execRequests'>;
  readonly client: Pick<Client, 'get'>;
  readonly signer: Pick<Signer, 'isOurGrant'>;
  readonly clock: Clock;
}

/** What the webhooks that watch and guard pods ask of a pod; fits the ports of admission. */
export function enteredPods({ stores, client, signer, clock }: EnteredPodsDeps) {
  const isOpen = ({ grant, revoked, deleting }: RequestView): boolean =>
    grant !== undefined && !revoked && !deleting && clock.now() < (parseTime(grant.expiresAt) ?? 0);

  /** The request that the pod was made for, as the store has it. A pod that somebody took our marks from is known by its uid. */
  const requestOf = (pod: PodView): RequestView | undefined =>
    stores.podRequests.byIndex(byUid, pod.madeFor?.uid ?? '').find(({ namespace }) => namespace === pod.namespace) ??
    stores.podRequests.byIndex(byPod, pod.key).find(({ children }) => children.some(({ uid }) => uid === pod.uid));

  return {
    knownPod(namespace: string, name: string) {
      const key = keyOf({ namespace, name });
      const pod = stores.pods.get(key);
      if (!pod) return undefined;
      const requests = [stores.podRequests, stores.execRequests].flatMap((store) => store.byIndex(byPod, key));
      return { uid: pod.uid, ours: requestOf(pod) !== undefined, grants: requests.filter(isOpen).flatMap(grantOf) };
    },

    async enteredPod(namespace: string, name: string, signal: AbortSignal) {
      const pod = stores.pods.get(keyOf({ namespace, name })) ?? (await livePod({ namespace, name }, signal));
      if (!pod) return undefined;
      const known = requestOf(pod);
      const ours = known !== undefined || pod.madeFor !== undefined;
      // The grant was stored before the pod was made, so a request without one is a store that lags behind.
      const request = known?.grant ? known : await liveRequest(pod, signal);
      const proved = request?.grant && isOpen(request) && (await signer.isOurGrant(request, request.grant, signal));
      return { uid: pod.uid, ours, grants: ours && request && proved ? grantOf(request) : [] };
    },
  };

  async function livePod(name: ObjectName, signal: AbortSignal): Promise<PodView | undefined> {
    const found = await read(pods, name, signal);
    return found && viewPod(found);
  }

  async function liveRequest({ namespace, madeFor }: PodView, signal: AbortSignal): Promise<RequestView | undefined> {
    if (!madeFor?.owner) return undefined;
    const found = await read(podAccessRequests, { namespace, name: madeFor.owner.name }, signal);
    const request = found && viewRequest({ ...found, kind: podAccessRequests.kind });
    return request?.uid === madeFor.uid ? request : undefined;
  }

  async function read(resource: Resource, name: ObjectName, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await client.get(resource, name, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

const grantOf = ({ name, grant }: RequestView) => (grant ? [{ request: name, subjects: grant.subjects }] : []);

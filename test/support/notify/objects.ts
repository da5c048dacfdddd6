import { accesses, type RequestKind } from '../../../src/api/access/kinds.ts';
import { childNameOf } from '../../../src/api/access/names.ts';
import type { AccessEvent } from '../../../src/api/notify/events.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../../src/api/object.ts';
import { formatTime } from '../../../src/kit/clock.ts';
import { grantOf } from '../access-objects.ts';

export const resourceOf = (kind: RequestKind): Resource => {
  const found = accesses.find(({ request }) => request.resource.kind === kind);
  if (!found) throw new Error(kind);
  return found.request.resource;
};

export const objectOf = (
  resource: Resource,
  namespace: string,
  name: string,
  spec: object,
  metadata: object = {},
): KubeObject => ({
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
  metadata: { namespace, name, ...metadata },
  spec,
});

export const teamsSpec = (host: string, over: object = {}): object => ({
  type: 'Teams',
  address: `https://${host}.example`,
  ...over,
});

export const subscriptionSpec = (provider: string, events: readonly AccessEvent[], over: object = {}): object => ({
  providerRef: { name: provider },
  events,
  ...over,
});

/** A condition as the leader of access writes it. */
export const conditionAt = (type: string, status: 'True' | 'False' | 'Unknown', atMs: number, reason = 'Success') => ({
  type,
  status,
  reason,
  message: `${type} is ${status}`,
  lastTransitionTime: formatTime(atMs),
  observedGeneration: 1,
});

export const grantUntil = (request: { name: string; uid: string }, startMs: number, endMs: number, over: object = {}) =>
  grantOf({
    pod: { name: childNameOf(request) },
    startsAt: formatTime(startMs),
    expiresAt: formatTime(endMs),
    ...over,
  });

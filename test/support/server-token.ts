import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { planHashAnnotation, requestLabel } from '../../src/api/access/names.ts';
import { Person } from './person.ts';

/** A client with the identity of a ServiceAccount of drawbridge, as if its token was stolen. */
export const accountUser = (plane: PlaneClient, account: string, namespace = 'drawbridge-system'): Promise<Person> =>
  Person.of(plane, `system:serviceaccount:${namespace}:${account}`, [
    'system:serviceaccounts',
    `system:serviceaccounts:${namespace}`,
  ]);

const noRequest = { name: 'forged', uid: '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11' };

/** Metadata that an API server cannot distinguish from the server's. Default: for a request that does not exist. */
export const childMetadata = (name = 'forged-7f0c1a52-access', request = noRequest) => ({
  name,
  labels: { [requestLabel]: request.uid },
  annotations: { [planHashAnnotation]: 'c0ffee' },
  ownerReferences: [
    {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'PodAccessRequest',
      name: request.name,
      uid: request.uid,
      controller: true,
    },
  ],
});

const container = { name: 'app', image: 'app:1' };

/** A Pod with these fields in its spec; `inContainer` are the fields of its only container. */
export const podWith = (spec: object = {}, inContainer: object = {}, metadata: object = childMetadata()) => ({
  metadata,
  spec: { containers: [{ ...container, ...inContainer }], ...spec },
});

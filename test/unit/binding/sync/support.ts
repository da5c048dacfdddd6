import {
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
} from '../../../../src/api/binding/names.ts';
import type { KubeObject, ObjectMeta } from '../../../../src/api/object.ts';
import type { ObjectFacts, SyncContext } from '../../../../src/binding/sync/plan.ts';
import { projectObject, type SyncedObject } from '../../../../src/binding/sync/synced-object.ts';
import { kettles } from '../../../support/binding/memory-stage.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';

export const clusterNamespace = 'kb-acme';

interface Fields {
  readonly metadata?: Partial<ObjectMeta>;
  readonly [field: string]: unknown;
}

export function kettle({ metadata = {}, ...fields }: Fields = {}): SyncedObject {
  const object: KubeObject = {
    apiVersion: 'kitchen.example/v1',
    kind: 'Kettle',
    metadata: { namespace: 'team-a', name: 'tea', uid: 'c-1', resourceVersion: '5', ...metadata },
    spec: { litres: 2 },
    ...fields,
  };
  return projectObject(deepFreeze(structuredClone(object)));
}

/** The consumer object once it has been synced. */
export const heldKettle = ({ metadata = {}, ...fields }: Fields = {}): SyncedObject =>
  kettle({
    ...fields,
    metadata: {
      finalizers: [syncerFinalizer],
      annotations: { [providerNamespaceAnnotation]: 'kb-acme-team-a', [providerUidAnnotation]: 'p-1' },
      ...metadata,
    },
  });

export const copyAnnotations = {
  [clusterNamespaceAnnotation]: clusterNamespace,
  [consumerNamespaceAnnotation]: 'team-a',
  [consumerUidAnnotation]: 'c-1',
  [copyOfAnnotation]: 'b-1/team-a/tea',
};

/** The copy of `kettle()`. */
export const copyOfKettle = ({ metadata = {}, ...fields }: Fields = {}): SyncedObject =>
  kettle({
    ...fields,
    metadata: {
      namespace: 'kb-acme-team-a',
      uid: 'p-1',
      resourceVersion: '9',
      annotations: copyAnnotations,
      ...metadata,
    },
  });

export const deletionTimestamp = '2026-11-21T09:00:00Z';

/** team-a has a service namespace, team-b has requested one, team-c has not, and the one of team-d is being deleted. */
export const pairs = {
  ofConsumer: (namespace: string) =>
    new Map([
      ['team-a', { serviceNamespace: 'kb-acme-team-a', deleting: false }],
      ['team-b', { serviceNamespace: undefined, deleting: false }],
      ['team-d', { serviceNamespace: 'kb-acme-team-d', deleting: true }],
    ]).get(namespace),
  ofProvider: (namespace: string) => ({ 'kb-acme-team-a': 'team-a', 'kb-acme-team-d': 'team-d' })[namespace],
};

export const syncContext: SyncContext = {
  clusterNamespace,
  bindingUid: 'b-1',
  copyResource: kettles,
  owner: undefined,
  statusSubresource: true,
};

/** Neither the object nor its copy exists. */
export const noFacts: ObjectFacts = {
  mode: 'sync',
  key: 'team-a/tea',
  consumer: undefined,
  deletedConsumerUid: undefined,
  place: { kind: 'at', key: 'kb-acme-team-a/tea' },
  copy: undefined,
  copyDeleteAccepted: false,
  isCopyAbsent: false,
};

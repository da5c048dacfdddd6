import type { ClaimedView, OriginAnnotations } from '../../../../src/binding/claims/claimed-view.ts';
import type { ClaimAction, ClaimFacts } from '../../../../src/binding/claims/plan.ts';
import type { Side } from '../../../../src/binding/sync-engine/syncer.ts';

const noOrigin: OriginAnnotations = {
  consumerNamespace: undefined,
  consumerUid: undefined,
  copyOf: undefined,
  providerNamespace: undefined,
  providerUid: undefined,
  providerIdentity: undefined,
};

type ViewFields = Partial<Omit<ClaimedView, 'origin'>> & { readonly origin?: Partial<OriginAnnotations> };

export const view = (side: Side, { origin, ...fields }: ViewFields = {}): ClaimedView => ({
  key: side === 'consumer' ? 'team-a/creds' : 'kb-acme-team-a/creds',
  uid: `${side}-uid`,
  resourceVersion: '1',
  namespace: side === 'consumer' ? 'team-a' : 'kb-acme-team-a',
  name: 'creds',
  deleting: false,
  labels: {},
  owner: undefined,
  contentDigest: 'content',
  metadataDigest: 'metadataDigest',
  type: 'Opaque',
  immutable: false,
  ...fields,
  origin: { ...noOrigin, ...origin },
});
export const consumer = (fields?: ViewFields) => view('consumer', fields);
export const provider = (fields?: ViewFields) => view('provider', fields);

/** Its copies in the provider and in the consumer, as the server creates them. */
export const copyUp = (fields: ViewFields = {}) =>
  provider({
    owner: 'consumer',
    ...fields,
    origin: { consumerNamespace: 'team-a', consumerUid: 'consumer-uid', copyOf: 'here/team-a/creds', ...fields.origin },
  });
export const copyDown = (fields: ViewFields = {}) =>
  consumer({
    owner: 'provider',
    ...fields,
    origin: {
      providerNamespace: 'kb-acme-team-a',
      providerUid: 'provider-uid',
      providerIdentity: 'acme',
      ...fields.origin,
    },
  });

export const facts = (fields: Partial<ClaimFacts> = {}): ClaimFacts => ({
  consumer: undefined,
  provider: undefined,
  claimed: { consumer: fields.consumer !== undefined, provider: fields.provider !== undefined },
  consumerNamespace: 'team-a',
  consumerCluster: 'here',
  isNamespaceActive: true,
  mayCopyToConsumer: true,
  serviceNamespace: { kind: 'ready', name: 'kb-acme-team-a' },
  providerIdentity: 'acme',
  deleted: { consumer: undefined, provider: undefined },
  ...fields,
});
export const went = (uid: string, wasObserved: boolean): ClaimFacts['deleted'] => {
  const gone = { uid, wasObserved };
  return { consumer: gone, provider: gone };
};
export const unclaimed = { consumer: false, provider: false };
export const shared = { kind: 'ready', name: 'team-a' } as const;

export const brief = (action: ClaimAction): string => {
  if (!('side' in action)) return action.do;
  if (action.do !== 'delete') return `${action.do} ${action.side}`;
  return `delete ${action.side} ${action.uid}${action.inferred ? ' inferred' : ''}`;
};

import type { ClaimedView, OriginAnnotations } from '../../../../src/binding/claims/claimed-view.ts';
import type { ClaimAction, ClaimFacts } from '../../../../src/binding/claims/plan.ts';
import type { Side } from '../../../../src/binding/sync-engine/syncer.ts';

type ViewFields = Partial<Omit<ClaimedView, 'origin'> & OriginAnnotations>;

/** The view of an object; the fields of its origin are among the others. */
export const view = (side: Side, fields: ViewFields = {}): ClaimedView => {
  const { consumerNamespace, consumerUid, copyOf, providerNamespace, providerUid, providerIdentity, ...rest } = fields;
  return {
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
    ...rest,
    origin: { consumerNamespace, consumerUid, copyOf, providerNamespace, providerUid, providerIdentity },
  };
};
export const consumer = (fields?: ViewFields) => view('consumer', fields);
export const provider = (fields?: ViewFields) => view('provider', fields);

/** Its copies in the provider and in the consumer, as the server creates them. */
export const copyUp = (fields: ViewFields = {}) => {
  const origin = { consumerNamespace: 'team-a', consumerUid: 'consumer-uid', copyOf: 'here/team-a/creds' };
  return provider({ owner: 'consumer', ...origin, ...fields });
};
export const copyDown = (fields: ViewFields = {}) => {
  const origin = { providerNamespace: 'kb-acme-team-a', providerUid: 'provider-uid', providerIdentity: 'acme' };
  return consumer({ owner: 'provider', ...origin, ...fields });
};

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
/** The object of the consumer, and that of the provider. */
export const both = (consumer: ClaimedView, provider: ClaimedView) => ({ consumer, provider });
export const went = (uid: string, wasObserved: boolean): ClaimFacts['deleted'] => {
  const gone = { uid, wasObserved };
  return { consumer: gone, provider: gone };
};
export const unclaimed = { consumer: false, provider: false };
export const shared = { kind: 'ready', name: 'team-a' } as const;

/** The action as a text, such as `update provider`. A delete names the uid unless it is that of `view`. */
export const brief = (action: ClaimAction): string => {
  if (!('side' in action)) return action.do;
  const { side } = action;
  if (action.do !== 'delete') return `${action.do} ${side}`;
  return `delete ${side}${action.uid === `${side}-uid` ? '' : ` ${action.uid}`}${action.inferred ? ' inferred' : ''}`;
};

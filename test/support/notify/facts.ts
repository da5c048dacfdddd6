import type { Fact } from '../../../src/notify/fact.ts';
import { factId } from '../../../src/notify/fact.ts';
import type { Delivery } from '../../../src/notify/facts/deliveries-of.ts';

/** `name`: of the request, whose uid it is, too. */
export const factOf = ({
  name = 'debug',
  namespace = 'payments',
  ...over
}: Partial<Fact> & { name?: string; namespace?: string } = {}): Fact => ({
  id: factId(name, over.event ?? 'requested'),
  event: 'requested',
  atMs: 0,
  request: { kind: 'PodAccessRequest', namespace, name, uid: name },
  template: 'shell',
  requester: 'alice',
  permissions: [],
  approvals: [],
  votes: [],
  ...over,
});

/** To one provider, unless `over` names another. */
export const deliveryOf = (fact: Fact, over: Partial<Delivery> = {}): Delivery => ({
  id: `${over.provider?.uid ?? 'p-1'}-${over.to ?? ''}-${fact.id}`,
  provider: { key: 'tools/chat', uid: 'p-1', type: 'Teams' },
  fact,
  settledMs: fact.atMs,
  ...over,
});

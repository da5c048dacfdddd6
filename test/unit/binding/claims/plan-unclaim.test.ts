import assert from 'node:assert/strict';
import { type ClaimFacts, planUnclaim } from '../../../../src/binding/claims/plan.ts';
import { both, brief, consumer, copyDown, copyUp, facts, provider, shared } from './claim-facts.ts';

describe('the plan for a claimed object whose binding is being deleted', () => {
  const cases: [what: string, fields: Partial<ClaimFacts>, expected: string][] = [
    ['keeps the original of the consumer', { consumer: consumer({ owner: 'consumer' }) }, ''],
    ['keeps the original of the provider', { provider: provider({ owner: 'provider' }) }, ''],
    ['deletes the copy of an object that stays', both(consumer({ owner: 'consumer' }), copyUp()), 'delete provider'],
    ['deletes the copy of a provider object', both(copyDown(), provider({ owner: 'provider' })), 'delete consumer'],
    ['deletes the copy of a deleted object', { provider: copyUp() }, 'delete provider'],
    ['keeps the copy of another cluster', { provider: copyUp({ copyOf: 'there/team-a/creds' }) }, ''],
    ['keeps a copy without proof', { provider: copyUp({ copyOf: undefined }) }, ''],
    [
      'keeps the copy of another consumer in a shared namespace',
      { provider: copyUp({ consumerUid: 'theirs', copyOf: 'there/team-a/creds' }), serviceNamespace: shared },
      '',
    ],
    ['keeps the copy from another provider', { consumer: copyDown({ providerIdentity: 'other' }) }, ''],
    [
      'does not delete a copy that is being deleted',
      both(consumer({ owner: 'consumer' }), copyUp({ deleting: true })),
      '',
    ],
  ];
  for (const [what, fields, expected] of cases) {
    it(what, () => assert.equal(planUnclaim(facts(fields)).map(brief).join(', '), expected));
  }
});

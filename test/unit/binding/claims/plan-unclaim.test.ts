import assert from 'node:assert/strict';
import { type ClaimFacts, planUnclaim } from '../../../../src/binding/claims/plan.ts';
import { brief, consumer, copyDown, copyUp, facts, provider, shared } from './claim-facts.ts';

describe('the plan for an object that is claimed no longer because the binding goes', () => {
  const cases: [what: string, fields: Partial<ClaimFacts>, expected: string[]][] = [
    ['leaves the original', { consumer: consumer({ owner: 'consumer' }) }, []],
    ['leaves the original of the provider', { provider: provider({ owner: 'provider' }) }, []],
    [
      'deletes the copy of an object that stays',
      { consumer: consumer({ owner: 'consumer' }), provider: copyUp() },
      ['delete provider provider-uid unbound'],
    ],
    [
      'deletes the copy that the provider gave',
      { consumer: copyDown(), provider: provider({ owner: 'provider' }) },
      ['delete consumer consumer-uid unbound'],
    ],
    [
      'deletes the copy of an object that is gone',
      { provider: copyUp({ origin: { copyOf: 'here/team-a/creds' } }) },
      ['delete provider provider-uid unbound'],
    ],
    [
      'leaves what another cluster has put there',
      { provider: copyUp({ origin: { copyOf: 'there/team-a/creds' } }) },
      [],
    ],
    ['leaves what may be that of another konnector', { provider: copyUp(), hasConflictingKonnector: true }, []],
    [
      'leaves what another consumer put into a namespace that they share',
      { provider: copyUp({ origin: { consumerUid: 'theirs' } }), serviceNamespace: shared },
      [],
    ],
    ['leaves the copy from another provider', { consumer: copyDown({ origin: { providerIdentity: 'other' } }) }, []],
    [
      'leaves what is on its way out already',
      { consumer: consumer({ owner: 'consumer' }), provider: copyUp({ deleting: true }) },
      [],
    ],
  ];
  for (const [what, fields, expected] of cases) {
    it(what, () => assert.deepEqual(planUnclaim(facts(fields)).actions.map(brief), expected));
  }
});

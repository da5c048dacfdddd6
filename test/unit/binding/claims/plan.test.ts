import assert from 'node:assert/strict';
import { type ClaimFacts, planClaim } from '../../../../src/binding/claims/plan.ts';
import { brief, consumer, copyDown, copyUp, facts, provider, shared, unclaimed, went } from './claim-facts.ts';

interface Case {
  readonly what: string;
  readonly facts: Partial<ClaimFacts>;
  readonly actions?: readonly string[];
  readonly problem?: RegExp;
  readonly waitsFor?: RegExp;
}

describe('the plan for a claimed object', () => {
  const groups: Readonly<Record<string, readonly Case[]>> = {
    'that the consumer owns': [
      { what: 'does nothing when nothing is there', facts: {} },
      {
        what: 'labels the original, then creates the copy',
        facts: { consumer: consumer() },
        actions: ['label consumer', 'create provider'],
      },
      {
        what: 'creates a copy that is missing',
        facts: { consumer: consumer({ owner: 'consumer' }) },
        actions: ['create provider'],
      },
      { what: 'leaves what is in step', facts: { consumer: consumer({ owner: 'consumer' }), provider: copyUp() } },
      {
        what: 'updates other content',
        facts: { consumer: consumer({ owner: 'consumer', contentDigest: 'new' }), provider: copyUp() },
        actions: ['update provider'],
      },
      {
        what: 'updates other labels and annotations',
        facts: { consumer: consumer({ owner: 'consumer', metadataDigest: 'new' }), provider: copyUp() },
        actions: ['update provider'],
      },
      {
        what: 'restores the owner label of the original after another client removed it',
        facts: { consumer: consumer(), provider: copyUp() },
        actions: ['label consumer'],
      },
      {
        what: 'renews the label of the copy',
        facts: { consumer: consumer({ owner: 'consumer' }), provider: copyUp({ owner: undefined }) },
        actions: ['update provider'],
      },
      {
        what: 'adds what an older konnector did not say',
        facts: {
          consumer: consumer({ owner: 'consumer' }),
          provider: copyUp({ origin: { consumerNamespace: undefined, consumerUid: undefined } }),
        },
        actions: ['update provider'],
      },
      {
        what: 'stamps the copy of an earlier object of that name',
        facts: { consumer: consumer({ owner: 'consumer' }), provider: copyUp({ origin: { consumerUid: 'earlier' } }) },
        actions: ['update provider'],
      },
      {
        what: 'replaces a copy of another type',
        facts: {
          consumer: consumer({ owner: 'consumer', type: 'kubernetes.io/tls', contentDigest: 'new' }),
          provider: copyUp(),
        },
        actions: ['delete provider provider-uid replaced'],
      },
      {
        what: 'replaces an immutable copy of other content',
        facts: {
          consumer: consumer({ owner: 'consumer', contentDigest: 'new' }),
          provider: copyUp({ immutable: true }),
        },
        actions: ['delete provider provider-uid replaced'],
      },
      {
        what: 'updates the labels of an immutable copy',
        facts: {
          consumer: consumer({ owner: 'consumer', metadataDigest: 'new' }),
          provider: copyUp({ immutable: true }),
        },
        actions: ['update provider'],
      },
      {
        what: 'waits for a copy that is on its way out',
        facts: {
          consumer: consumer({ owner: 'consumer', contentDigest: 'new' }),
          provider: copyUp({ deleting: true }),
        },
        waitsFor: /the deletion of the copy/,
      },
      { what: 'copies nothing that is being deleted', facts: { consumer: consumer({ deleting: true }) } },
      {
        what: 'keeps the copy until the original is gone',
        facts: { consumer: consumer({ owner: 'consumer', deleting: true, contentDigest: 'new' }), provider: copyUp() },
      },
      {
        what: 'asks for a service namespace',
        facts: { consumer: consumer(), serviceNamespace: { kind: 'none' } },
        actions: ['request-namespace'],
        waitsFor: /service namespace/,
      },
      {
        what: 'asks for none when the namespace is on its way out',
        facts: { consumer: consumer(), serviceNamespace: { kind: 'none' }, isNamespaceActive: false },
      },
      {
        what: 'asks for none when no claim selects the object',
        facts: { consumer: consumer({ owner: 'consumer' }), claimed: unclaimed, serviceNamespace: { kind: 'none' } },
      },
      {
        what: 'waits for a service namespace that was asked for',
        facts: { consumer: consumer(), serviceNamespace: { kind: 'pending' } },
        waitsFor: /service namespace/,
      },
      {
        what: 'leaves an object of the provider that is no copy, and says so',
        facts: { consumer: consumer({ owner: 'consumer' }), provider: provider() },
        problem: /the provider's object kb-acme-team-a\/creds is not a copy of it; rename yours/,
      },
    ],
    'that is no longer selected': [
      {
        what: 'leaves copy and original as they are',
        facts: {
          consumer: consumer({ owner: 'consumer', contentDigest: 'new' }),
          provider: copyUp(),
          claimed: unclaimed,
        },
      },
      {
        what: 'deletes the copy with its original',
        facts: { provider: copyUp(), claimed: unclaimed, deleted: went('consumer-uid', true) },
        actions: ['delete provider provider-uid gone'],
      },
      {
        what: 'deletes the copy in the consumer with its original',
        facts: { consumer: copyDown(), claimed: unclaimed, deleted: went('provider-uid', true) },
        actions: ['delete consumer consumer-uid gone'],
      },
    ],
    'whose original in the consumer is gone': [
      {
        what: 'deletes the copy',
        facts: { provider: copyUp(), deleted: went('consumer-uid', true) },
        actions: ['delete provider provider-uid gone'],
      },
      {
        what: 'says when that is only inferred from a list',
        facts: { provider: copyUp(), deleted: went('consumer-uid', false) },
        actions: ['delete provider provider-uid inferred'],
      },
      {
        what: 'says when that is only inferred after a start',
        facts: { provider: copyUp() },
        actions: ['delete provider provider-uid inferred'],
      },
      {
        what: 'leaves what another cluster with the same kubeconfig has put there',
        facts: { provider: copyUp({ origin: { copyOf: 'there/team-a/creds' } }) },
      },
      {
        what: 'leaves the clone of a copy under another name',
        facts: { provider: copyUp({ origin: { copyOf: 'here/team-a/other' } }) },
      },
      {
        what: 'leaves a copy that proves to be of some cluster while it does not know which one this is',
        facts: { provider: copyUp({ origin: { copyOf: 'here/team-a/creds' } }), consumerCluster: undefined },
      },
      {
        what: 'deletes a copy with proof of this name, even if another konnector reports to the provider',
        facts: { provider: copyUp({ origin: { copyOf: 'here/team-a/creds' } }), hasConflictingKonnector: true },
        actions: ['delete provider provider-uid inferred'],
      },
      {
        what: 'infers nothing without that proof while another konnector is heard',
        facts: { provider: copyUp(), hasConflictingKonnector: true },
      },
      {
        what: 'deletes the copy of an observed deletion, even with a conflicting konnector',
        facts: {
          provider: copyUp({ origin: { copyOf: 'there/team-a/creds' } }),
          hasConflictingKonnector: true,
          deleted: went('consumer-uid', true),
        },
        actions: ['delete provider provider-uid gone'],
      },
      {
        what: 'leaves a copy that does not say of what',
        facts: { provider: copyUp({ origin: { consumerUid: undefined } }) },
      },
      {
        what: 'leaves a copy of another namespace',
        facts: { provider: copyUp({ origin: { consumerNamespace: 'team-b' } }) },
      },
      { what: 'leaves a copy that goes already', facts: { provider: copyUp({ deleting: true }) } },
      {
        what: 'leaves a copy in a namespace that is not ready',
        facts: { provider: copyUp(), serviceNamespace: { kind: 'pending' } },
      },
    ],
    'in a namespace that consumers share': [
      {
        what: 'leaves what another consumer put there',
        facts: { provider: copyUp({ origin: { consumerUid: 'theirs' } }), serviceNamespace: shared },
      },
      {
        what: 'deletes a copy that proves to be of this name here',
        facts: { provider: copyUp({ origin: { copyOf: 'here/team-a/creds' } }), serviceNamespace: shared },
        actions: ['delete provider provider-uid inferred'],
      },
      {
        what: 'does not fight over a name',
        facts: {
          consumer: consumer({ owner: 'consumer', contentDigest: 'new' }),
          provider: copyUp({ origin: { consumerUid: 'theirs' } }),
          serviceNamespace: shared,
        },
        problem: /belongs to another consumer/,
      },
      {
        what: 'stamps the copy of what went a moment ago',
        facts: {
          consumer: consumer({ owner: 'consumer' }),
          provider: copyUp({ origin: { consumerUid: 'earlier' } }),
          serviceNamespace: shared,
          deleted: went('earlier', true),
        },
        actions: ['update provider'],
      },
      {
        what: 'deletes the copy of what went',
        facts: { provider: copyUp(), serviceNamespace: shared, deleted: went('consumer-uid', true) },
        actions: ['delete provider provider-uid gone'],
      },
    ],
    'that the provider owns': [
      {
        what: 'labels the original, then creates the copy',
        facts: { provider: provider() },
        actions: ['label provider', 'create consumer'],
      },
      { what: 'leaves what is in step', facts: { provider: provider({ owner: 'provider' }), consumer: copyDown() } },
      {
        what: 'leaves what another konnector put in step',
        facts: {
          provider: provider({ owner: 'provider' }),
          consumer: copyDown({ origin: { providerIdentity: undefined } }),
        },
      },
      {
        what: 'updates other content',
        facts: { provider: provider({ owner: 'provider', contentDigest: 'new' }), consumer: copyDown() },
        actions: ['update consumer'],
      },
      {
        what: 'deletes the copy with its original',
        facts: { provider: provider({ owner: 'provider', deleting: true }), consumer: copyDown() },
        actions: ['delete consumer consumer-uid gone'],
      },
      {
        what: 'says when it is only inferred that the original is gone',
        facts: { consumer: copyDown() },
        actions: ['delete consumer consumer-uid inferred'],
      },
      {
        what: 'deletes nothing that does not say where it is from',
        facts: { consumer: copyDown({ origin: { providerUid: undefined } }) },
      },
      {
        what: 'leaves what only carries the label of the provider',
        facts: { consumer: consumer({ owner: 'provider' }) },
      },
      {
        what: 'overwrites nothing that carries no label, whatever the provider says',
        facts: { provider: provider({ owner: 'provider', contentDigest: 'evil' }), consumer: consumer() },
        problem: /has its own object of this name, which would overwrite it; rename/,
      },
      {
        what: 'overwrites nothing that the consumer owns',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'evil' }),
          consumer: consumer({ owner: 'consumer' }),
        },
        problem: /the owner labels of the two objects differ; keep the original/,
      },
      {
        what: 'says nothing of a label that no claim is about',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'evil' }),
          consumer: consumer({ owner: 'consumer' }),
          claimed: unclaimed,
        },
      },
      {
        what: 'writes nothing on the word of a label alone',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'evil' }),
          consumer: copyDown(),
          claimed: unclaimed,
        },
      },
      {
        what: 'brings nothing into a system namespace',
        facts: { provider: provider({ owner: 'provider' }), consumerNamespace: 'kube-system' },
        problem: /system namespace/,
      },
      {
        what: 'brings nothing new into a namespace that the binding has nothing to do with',
        facts: { provider: provider({ owner: 'provider' }), mayCopyToConsumer: false },
        waitsFor: /a bound object in the namespace team-a/,
      },
      {
        what: 'keeps what is there already in step',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'new' }),
          consumer: copyDown(),
          mayCopyToConsumer: false,
        },
        actions: ['update consumer'],
      },
      {
        what: 'waits for the namespace',
        facts: { provider: provider({ owner: 'provider' }), isNamespaceActive: false },
        waitsFor: /namespace team-a/,
      },
      {
        what: 'leaves the copy from another provider when this one has none',
        facts: { consumer: copyDown({ origin: { providerIdentity: 'other', providerUid: 'theirs' } }) },
      },
      {
        what: 'leaves a copy of which it cannot tell whether it is from this provider',
        facts: { consumer: copyDown({ origin: { providerUid: 'theirs' } }), providerIdentity: undefined },
      },
      {
        what: 'does not overwrite a copy of which it cannot tell whether it is from this provider',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'new' }),
          consumer: copyDown({ origin: { providerUid: 'theirs' } }),
          providerIdentity: undefined,
        },
      },
      {
        what: 'knows a copy by its original while it does not know which provider this is',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'new' }),
          consumer: copyDown(),
          providerIdentity: undefined,
        },
        actions: ['update consumer'],
      },
      {
        what: 'deletes the copy of what went while it does not know which provider this is',
        facts: { consumer: copyDown(), providerIdentity: undefined, deleted: went('provider-uid', true) },
        actions: ['delete consumer consumer-uid gone'],
      },
      {
        what: 'leaves a copy in a shared namespace that does not say which provider it is from',
        facts: {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'team-a' } }),
          serviceNamespace: shared,
        },
      },
      {
        what: 'deletes it when its original was seen to go',
        facts: {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'team-a' } }),
          serviceNamespace: shared,
          deleted: went('provider-uid', true),
        },
        actions: ['delete consumer consumer-uid gone'],
      },
      {
        what: 'leaves the copy from another namespace of a provider',
        facts: {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'kb-other-team-a' } }),
        },
      },
      {
        what: 'does not fight with another provider over a name',
        facts: { provider: provider(), consumer: copyDown({ origin: { providerIdentity: 'other' } }) },
        problem: /from another provider/,
      },
    ],
    'without an owner label': [
      {
        what: 'skips it and says so',
        facts: { consumer: consumer(), provider: provider({ contentDigest: 'other' }) },
        problem: /it exists on both sides without an owner label; label the original/,
      },
      {
        what: 'says nothing when no claim selects it',
        facts: { consumer: consumer(), provider: provider(), claimed: unclaimed },
      },
    ],
  };
  for (const [group, cases] of Object.entries(groups)) {
    describe(group, () => {
      for (const { what, facts: fields, actions = [], problem, waitsFor } of cases) {
        it(what, () => {
          const plan = planClaim(facts(fields));
          assert.deepEqual(plan.actions.map(brief), actions);
          if (problem) assert.match(plan.problem ?? '', problem);
          else assert.equal(plan.problem, undefined);
          if (waitsFor) assert.match(plan.waitsFor ?? '', waitsFor);
          else assert.equal(plan.waitsFor, undefined);
        });
      }
    });
  }
});

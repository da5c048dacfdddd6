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
      { what: 'does nothing without any object', facts: {} },
      {
        what: 'labels the original, then creates the copy',
        facts: { consumer: consumer() },
        actions: ['label consumer', 'create provider'],
      },
      {
        what: 'creates a missing copy',
        facts: { consumer: consumer({ owner: 'consumer' }) },
        actions: ['create provider'],
      },
      {
        what: 'does nothing if both are in sync',
        facts: { consumer: consumer({ owner: 'consumer' }), provider: copyUp() },
      },
      {
        what: 'updates different content',
        facts: { consumer: consumer({ owner: 'consumer', contentDigest: 'new' }), provider: copyUp() },
        actions: ['update provider'],
      },
      {
        what: 'updates different labels and annotations',
        facts: { consumer: consumer({ owner: 'consumer', metadataDigest: 'new' }), provider: copyUp() },
        actions: ['update provider'],
      },
      {
        what: 'restores the owner label of the original after another client removed it',
        facts: { consumer: consumer(), provider: copyUp() },
        actions: ['label consumer'],
      },
      {
        what: 'restores the owner label of the copy',
        facts: { consumer: consumer({ owner: 'consumer' }), provider: copyUp({ owner: undefined }) },
        actions: ['update provider'],
      },
      {
        what: 'adds the annotations that an older konnector did not set',
        facts: {
          consumer: consumer({ owner: 'consumer' }),
          provider: copyUp({ origin: { consumerNamespace: undefined, consumerUid: undefined } }),
        },
        actions: ['update provider'],
      },
      {
        what: 'adopts the copy of an earlier object of that name',
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
        what: 'replaces an immutable copy with different content',
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
        what: 'waits for a copy that is being deleted',
        facts: {
          consumer: consumer({ owner: 'consumer', contentDigest: 'new' }),
          provider: copyUp({ deleting: true }),
        },
        waitsFor: /the deletion of the copy/,
      },
      { what: 'copies nothing that is being deleted', facts: { consumer: consumer({ deleting: true }) } },
      {
        what: 'keeps the copy until the original is deleted',
        facts: { consumer: consumer({ owner: 'consumer', deleting: true, contentDigest: 'new' }), provider: copyUp() },
      },
      {
        what: 'requests a service namespace',
        facts: { consumer: consumer(), serviceNamespace: { kind: 'none' } },
        actions: ['request-namespace'],
        waitsFor: /service namespace/,
      },
      {
        what: 'requests none while the namespace is being deleted',
        facts: { consumer: consumer(), serviceNamespace: { kind: 'none' }, isNamespaceActive: false },
      },
      {
        what: 'requests none if no claim selects the object',
        facts: { consumer: consumer({ owner: 'consumer' }), claimed: unclaimed, serviceNamespace: { kind: 'none' } },
      },
      {
        what: 'waits for a requested service namespace',
        facts: { consumer: consumer(), serviceNamespace: { kind: 'pending' } },
        waitsFor: /service namespace/,
      },
      {
        what: 'does not change an object of the provider that is no copy, and reports it',
        facts: { consumer: consumer({ owner: 'consumer' }), provider: provider() },
        problem: /the provider's object kb-acme-team-a\/creds is not a copy of it; rename yours/,
      },
    ],
    'that is no longer selected': [
      {
        what: 'changes neither copy nor original',
        facts: {
          consumer: consumer({ owner: 'consumer', contentDigest: 'new' }),
          provider: copyUp(),
          claimed: unclaimed,
        },
      },
      {
        what: 'deletes the copy with its original',
        facts: { provider: copyUp(), claimed: unclaimed, deleted: went('consumer-uid', true) },
        actions: ['delete provider provider-uid deleted'],
      },
      {
        what: 'deletes the copy in the consumer with its original',
        facts: { consumer: copyDown(), claimed: unclaimed, deleted: went('provider-uid', true) },
        actions: ['delete consumer consumer-uid deleted'],
      },
    ],
    'whose original in the consumer is deleted': [
      {
        what: 'deletes the copy',
        facts: { provider: copyUp(), deleted: went('consumer-uid', true) },
        actions: ['delete provider provider-uid deleted'],
      },
      {
        what: 'marks the delete as inferred after a list',
        facts: { provider: copyUp(), deleted: went('consumer-uid', false) },
        actions: ['delete provider provider-uid inferred'],
      },
      {
        what: 'marks the delete as inferred after a start',
        facts: { provider: copyUp() },
        actions: ['delete provider provider-uid inferred'],
      },
      {
        what: 'keeps the copy of another cluster with the same kubeconfig',
        facts: { provider: copyUp({ origin: { copyOf: 'there/team-a/creds' } }) },
      },
      {
        what: 'keeps the clone of a copy under another name',
        facts: { provider: copyUp({ origin: { copyOf: 'here/team-a/other' } }) },
      },
      {
        what: 'keeps a copy with proof while the identity of this cluster is not known',
        facts: { provider: copyUp(), consumerCluster: undefined },
      },
      {
        what: 'keeps a copy without proof, as kube-bind writes it',
        facts: { provider: copyUp({ origin: { copyOf: undefined } }) },
      },
      {
        what: 'deletes the copy of an observed deletion, also of a cluster with another identity',
        facts: { provider: copyUp({ origin: { copyOf: 'there/team-a/creds' } }), deleted: went('consumer-uid', true) },
        actions: ['delete provider provider-uid deleted'],
      },
      {
        what: 'keeps a copy that names no original',
        facts: { provider: copyUp({ origin: { consumerUid: undefined } }) },
      },
      {
        what: 'keeps a copy of another namespace',
        facts: { provider: copyUp({ origin: { consumerNamespace: 'team-b' } }) },
      },
      { what: 'does not delete a copy that is being deleted', facts: { provider: copyUp({ deleting: true }) } },
      {
        what: 'keeps a copy in a namespace that is not ready',
        facts: { provider: copyUp(), serviceNamespace: { kind: 'pending' } },
      },
    ],
    'in a namespace that consumers share': [
      {
        what: 'keeps the copy of another consumer',
        facts: {
          provider: copyUp({ origin: { consumerUid: 'theirs', copyOf: 'there/team-a/creds' } }),
          serviceNamespace: shared,
        },
      },
      {
        what: 'deletes a copy with proof of this cluster and name',
        facts: { provider: copyUp(), serviceNamespace: shared },
        actions: ['delete provider provider-uid inferred'],
      },
      {
        what: 'does not overwrite the object of another consumer',
        facts: {
          consumer: consumer({ owner: 'consumer', contentDigest: 'new' }),
          provider: copyUp({ origin: { consumerUid: 'theirs', copyOf: 'there/team-a/creds' } }),
          serviceNamespace: shared,
        },
        problem: /belongs to another consumer, or to an earlier object of this name/,
      },
      {
        what: 'adopts the copy of a recently deleted object',
        facts: {
          consumer: consumer({ owner: 'consumer' }),
          provider: copyUp({ origin: { consumerUid: 'earlier' } }),
          serviceNamespace: shared,
          deleted: went('earlier', true),
        },
        actions: ['update provider'],
      },
      {
        what: 'deletes the copy of a deleted object',
        facts: { provider: copyUp(), serviceNamespace: shared, deleted: went('consumer-uid', true) },
        actions: ['delete provider provider-uid deleted'],
      },
    ],
    'that the provider owns': [
      {
        what: 'labels the original, then creates the copy',
        facts: { provider: provider() },
        actions: ['label provider', 'create consumer'],
      },
      {
        what: 'does nothing if both are in sync',
        facts: { provider: provider({ owner: 'provider' }), consumer: copyDown() },
      },
      {
        what: 'does not write a copy that another konnector synced',
        facts: {
          provider: provider({ owner: 'provider' }),
          consumer: copyDown({ origin: { providerIdentity: undefined } }),
        },
      },
      {
        what: 'updates different content',
        facts: { provider: provider({ owner: 'provider', contentDigest: 'new' }), consumer: copyDown() },
        actions: ['update consumer'],
      },
      {
        what: 'deletes the copy with its original',
        facts: { provider: provider({ owner: 'provider', deleting: true }), consumer: copyDown() },
        actions: ['delete consumer consumer-uid deleted'],
      },
      {
        what: 'marks the delete as inferred without an observed deletion',
        facts: { consumer: copyDown() },
        actions: ['delete consumer consumer-uid inferred'],
      },
      {
        what: 'deletes no copy without the uid of its original',
        facts: { consumer: copyDown({ origin: { providerUid: undefined } }) },
      },
      {
        what: 'keeps an object that only has the owner label of the provider',
        facts: { consumer: consumer({ owner: 'provider' }) },
      },
      {
        what: 'overwrites no object without an owner label, even if the provider labels its own',
        facts: { provider: provider({ owner: 'provider', contentDigest: 'evil' }), consumer: consumer() },
        problem: /has its own object of this name, which would overwrite it; rename/,
      },
      {
        what: 'overwrites no object that the consumer owns',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'evil' }),
          consumer: consumer({ owner: 'consumer' }),
        },
        problem:
          /the owner labels of the two objects differ; delete the copy, and set the label kube-bind\.io\/owner of the original/,
      },
      {
        what: 'reports no problem of labels without a claim',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'evil' }),
          consumer: consumer({ owner: 'consumer' }),
          claimed: unclaimed,
        },
      },
      {
        what: 'writes nothing because of an owner label alone',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'evil' }),
          consumer: copyDown(),
          claimed: unclaimed,
        },
      },
      {
        what: 'copies no provider object to a system namespace',
        facts: { provider: provider({ owner: 'provider' }), consumerNamespace: 'kube-system' },
        problem: /system namespace/,
      },
      {
        what: 'copies no new object to a namespace without bound objects',
        facts: { provider: provider({ owner: 'provider' }), mayCopyToConsumer: false },
        waitsFor: /a bound object in the namespace team-a/,
      },
      {
        what: 'still updates an existing copy there',
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
        what: 'keeps the copy from another provider',
        facts: { consumer: copyDown({ origin: { providerIdentity: 'other', providerUid: 'theirs' } }) },
      },
      {
        what: 'keeps a copy whose provider cannot be determined',
        facts: { consumer: copyDown({ origin: { providerUid: 'theirs' } }), providerIdentity: undefined },
      },
      {
        what: 'does not overwrite a copy whose provider cannot be determined',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'new' }),
          consumer: copyDown({ origin: { providerUid: 'theirs' } }),
          providerIdentity: undefined,
        },
      },
      {
        what: 'recognizes a copy by its original while the provider is not identified',
        facts: {
          provider: provider({ owner: 'provider', contentDigest: 'new' }),
          consumer: copyDown(),
          providerIdentity: undefined,
        },
        actions: ['update consumer'],
      },
      {
        what: 'deletes the copy of a deleted original while the provider is not identified',
        facts: { consumer: copyDown(), providerIdentity: undefined, deleted: went('provider-uid', true) },
        actions: ['delete consumer consumer-uid deleted'],
      },
      {
        what: 'keeps a copy in a shared namespace that does not name its provider',
        facts: {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'team-a' } }),
          serviceNamespace: shared,
        },
      },
      {
        what: 'deletes such a copy if the deletion of its original was observed',
        facts: {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'team-a' } }),
          serviceNamespace: shared,
          deleted: went('provider-uid', true),
        },
        actions: ['delete consumer consumer-uid deleted'],
      },
      {
        what: 'keeps the copy from another namespace of the provider',
        facts: {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'kb-other-team-a' } }),
        },
      },
      {
        what: 'does not overwrite the copy from another provider',
        facts: { provider: provider(), consumer: copyDown({ origin: { providerIdentity: 'other' } }) },
        problem: /from another provider/,
      },
    ],
    'without an owner label': [
      {
        what: 'skips it and reports a problem',
        facts: { consumer: consumer(), provider: provider({ contentDigest: 'other' }) },
        problem: /it exists on both sides without an owner label; delete one of the two, or label the one to overwrite/,
      },
      {
        what: 'reports no problem if no claim selects it',
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

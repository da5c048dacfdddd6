import assert from 'node:assert/strict';
import { type ClaimFacts, planClaim } from '../../../../src/binding/claims/plan.ts';
import { brief, consumer, copyDown, copyUp, facts, provider, shared, unclaimed, went } from './claim-facts.ts';

type Case = readonly [
  what: string,
  facts: Partial<ClaimFacts>,
  actions?: readonly string[],
  says?: { readonly problem?: RegExp; readonly waitsFor?: RegExp },
];

/** With the label of the owner: the consumer holds its object, the provider lends it. */
const held = (fields: Parameters<typeof consumer>[0] = {}) => consumer({ owner: 'consumer', ...fields });
const lent = (fields: Parameters<typeof provider>[0] = {}) => provider({ owner: 'provider', ...fields });

describe('the plan for a claimed object', () => {
  const groups: Readonly<Record<string, readonly Case[]>> = {
    'that the consumer owns': [
      ['does nothing without any object', {}],
      ['labels the original, then creates the copy', { consumer: consumer() }, ['label consumer', 'create provider']],
      ['creates a missing copy', { consumer: held() }, ['create provider']],
      ['does nothing if both are in sync', { consumer: held(), provider: copyUp() }],
      ['updates new content', { consumer: held({ contentDigest: 'new' }), provider: copyUp() }, ['update provider']],
      ['updates new metadata', { consumer: held({ metadataDigest: 'new' }), provider: copyUp() }, ['update provider']],
      [
        'restores the owner label of the original after another client removed it',
        { consumer: consumer(), provider: copyUp() },
        ['label consumer'],
      ],
      ['restores the copied label', { consumer: held(), provider: copyUp({ owner: undefined }) }, ['update provider']],
      [
        'adds the annotations that an older konnector did not set',
        { consumer: held(), provider: copyUp({ origin: { consumerNamespace: undefined, consumerUid: undefined } }) },
        ['update provider'],
      ],
      [
        'adopts the copy of an earlier object of that name',
        { consumer: held(), provider: copyUp({ origin: { consumerUid: 'earlier' } }) },
        ['update provider'],
      ],
      [
        'replaces a copy of another type',
        { consumer: held({ type: 'kubernetes.io/tls', contentDigest: 'new' }), provider: copyUp() },
        ['delete provider provider-uid'],
      ],
      [
        'replaces an immutable copy with different content',
        { consumer: held({ contentDigest: 'new' }), provider: copyUp({ immutable: true }) },
        ['delete provider provider-uid'],
      ],
      [
        'updates the labels of an immutable copy',
        { consumer: held({ metadataDigest: 'new' }), provider: copyUp({ immutable: true }) },
        ['update provider'],
      ],
      [
        'waits for a copy that is being deleted',
        { consumer: held({ contentDigest: 'new' }), provider: copyUp({ deleting: true }) },
        [],
        { waitsFor: /the deletion of the copy/ },
      ],
      ['copies nothing that is being deleted', { consumer: consumer({ deleting: true }) }],
      [
        'keeps the copy until the original is deleted',
        { consumer: held({ deleting: true, contentDigest: 'new' }), provider: copyUp() },
      ],
      [
        'requests a service namespace',
        { consumer: consumer(), serviceNamespace: { kind: 'none' } },
        ['requestNamespace'],
      ],
      [
        'requests none while the namespace is being deleted',
        { consumer: consumer(), serviceNamespace: { kind: 'none' }, isNamespaceActive: false },
      ],
      ['requests none without a claim', { consumer: held(), claimed: unclaimed, serviceNamespace: { kind: 'none' } }],
      [
        'waits for a requested service namespace',
        { consumer: consumer(), serviceNamespace: { kind: 'pending' } },
        [],
        { waitsFor: /the provider's namespace for team-a/ },
      ],
      [
        'does not change an object of the provider that is no copy, and reports it',
        { consumer: held(), provider: provider() },
        [],
        { problem: /the provider's object kb-acme-team-a\/creds is not a copy of it; rename yours/ },
      ],
    ],
    'that is no longer selected': [
      ['changes neither of them', { consumer: held({ contentDigest: 'new' }), provider: copyUp(), claimed: unclaimed }],
      [
        'deletes the copy with its original',
        { provider: copyUp(), claimed: unclaimed, deleted: went('consumer-uid', true) },
        ['delete provider provider-uid'],
      ],
      [
        'deletes the copy in the consumer with its original',
        { consumer: copyDown(), claimed: unclaimed, deleted: went('provider-uid', true) },
        ['delete consumer consumer-uid'],
      ],
    ],
    'whose original in the consumer is deleted': [
      [
        'deletes the copy',
        { provider: copyUp(), deleted: went('consumer-uid', true) },
        ['delete provider provider-uid'],
      ],
      [
        'marks the delete as inferred after a list',
        { provider: copyUp(), deleted: went('consumer-uid', false) },
        ['delete provider provider-uid inferred'],
      ],
      ['marks the delete as inferred after a start', { provider: copyUp() }, ['delete provider provider-uid inferred']],
      [
        'keeps the copy of another cluster with the same kubeconfig',
        { provider: copyUp({ origin: { copyOf: 'there/team-a/creds' } }) },
      ],
      ['keeps a clone of a copy under another name', { provider: copyUp({ origin: { copyOf: 'here/team-a/other' } }) }],
      [
        'keeps a copy with proof while the identity of this cluster is not known',
        { provider: copyUp(), consumerCluster: undefined },
      ],
      ['keeps a copy without proof, as kube-bind writes it', { provider: copyUp({ origin: { copyOf: undefined } }) }],
      [
        'deletes the copy of an observed deletion, also of a cluster with another identity',
        { provider: copyUp({ origin: { copyOf: 'there/team-a/creds' } }), deleted: went('consumer-uid', true) },
        ['delete provider provider-uid'],
      ],
      ['keeps a copy that names no original', { provider: copyUp({ origin: { consumerUid: undefined } }) }],
      ['keeps a copy of another namespace', { provider: copyUp({ origin: { consumerNamespace: 'team-b' } }) }],
      ['does not delete a copy that is being deleted', { provider: copyUp({ deleting: true }) }],
      ['keeps a copy in a namespace that is not ready', { provider: copyUp(), serviceNamespace: { kind: 'pending' } }],
    ],
    'in a namespace that consumers share': [
      [
        'keeps the copy of another consumer',
        {
          provider: copyUp({ origin: { consumerUid: 'theirs', copyOf: 'there/team-a/creds' } }),
          serviceNamespace: shared,
        },
      ],
      [
        'deletes a copy with proof of this cluster and name',
        { provider: copyUp(), serviceNamespace: shared },
        ['delete provider provider-uid inferred'],
      ],
      [
        'does not overwrite the object of another consumer',
        {
          consumer: held({ contentDigest: 'new' }),
          provider: copyUp({ origin: { consumerUid: 'theirs', copyOf: 'there/team-a/creds' } }),
          serviceNamespace: shared,
        },
        [],
        { problem: /belongs to another consumer, or to an earlier object of this name/ },
      ],
      [
        'adopts the copy of a recently deleted object',
        {
          consumer: held(),
          provider: copyUp({ origin: { consumerUid: 'earlier' } }),
          serviceNamespace: shared,
          deleted: went('earlier', true),
        },
        ['update provider'],
      ],
      [
        'deletes the copy of a deleted object',
        { provider: copyUp(), serviceNamespace: shared, deleted: went('consumer-uid', true) },
        ['delete provider provider-uid'],
      ],
    ],
    'that the provider owns': [
      ['labels the original, then creates the copy', { provider: provider() }, ['label provider', 'create consumer']],
      ['does nothing if both are in sync', { provider: lent(), consumer: copyDown() }],
      [
        'does not write a copy that another konnector synced',
        { provider: lent(), consumer: copyDown({ origin: { providerIdentity: undefined } }) },
      ],
      ['updates new content', { provider: lent({ contentDigest: 'new' }), consumer: copyDown() }, ['update consumer']],
      [
        'deletes the copy with its original',
        { provider: lent({ deleting: true }), consumer: copyDown() },
        ['delete consumer consumer-uid'],
      ],
      [
        'marks the delete as inferred without an observed deletion',
        { consumer: copyDown() },
        ['delete consumer consumer-uid inferred'],
      ],
      ['deletes no copy without uid of its original', { consumer: copyDown({ origin: { providerUid: undefined } }) }],
      ['keeps an object that only has the owner label of the provider', { consumer: consumer({ owner: 'provider' }) }],
      [
        'overwrites no object without an owner label, even if the provider labels its own',
        { provider: lent({ contentDigest: 'evil' }), consumer: consumer() },
        [],
        { problem: /has its own object of this name, which would overwrite it; rename/ },
      ],
      [
        'overwrites no object that the consumer owns',
        { provider: lent({ contentDigest: 'evil' }), consumer: held() },
        [],
        {
          problem:
            /the owner labels of the two objects differ; delete the copy, and set the label kube-bind\.io\/owner of the original/,
        },
      ],
      [
        'reports no problem of labels without a claim',
        { provider: lent({ contentDigest: 'evil' }), consumer: held(), claimed: unclaimed },
      ],
      [
        'writes nothing because of an owner label alone',
        { provider: lent({ contentDigest: 'evil' }), consumer: copyDown(), claimed: unclaimed },
      ],
      [
        'copies no provider object to a system namespace',
        { provider: lent(), consumerNamespace: 'kube-system' },
        [],
        { problem: /system namespace/ },
      ],
      [
        'copies no new object to a namespace without bound objects',
        { provider: lent(), mayCopyToConsumer: false },
        [],
        { waitsFor: /a bound object in the namespace team-a/ },
      ],
      [
        'still updates an existing copy there',
        { provider: lent({ contentDigest: 'new' }), consumer: copyDown(), mayCopyToConsumer: false },
        ['update consumer'],
      ],
      ['waits for the namespace', { provider: lent(), isNamespaceActive: false }, [], { waitsFor: /namespace team-a/ }],
      [
        'keeps the copy from another provider',
        { consumer: copyDown({ origin: { providerIdentity: 'other', providerUid: 'theirs' } }) },
      ],
      [
        'keeps a copy whose provider cannot be determined',
        { consumer: copyDown({ origin: { providerUid: 'theirs' } }), providerIdentity: undefined },
      ],
      [
        'does not overwrite a copy whose provider cannot be determined',
        {
          provider: lent({ contentDigest: 'new' }),
          consumer: copyDown({ origin: { providerUid: 'theirs' } }),
          providerIdentity: undefined,
        },
      ],
      [
        'recognizes a copy by its original while the provider is not identified',
        { provider: lent({ contentDigest: 'new' }), consumer: copyDown(), providerIdentity: undefined },
        ['update consumer'],
      ],
      [
        'deletes the copy of a deleted original while the provider is not identified',
        { consumer: copyDown(), providerIdentity: undefined, deleted: went('provider-uid', true) },
        ['delete consumer consumer-uid'],
      ],
      [
        'keeps a copy in a shared namespace that does not name its provider',
        {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'team-a' } }),
          serviceNamespace: shared,
        },
      ],
      [
        'deletes such a copy if the deletion of its original was observed',
        {
          consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'team-a' } }),
          serviceNamespace: shared,
          deleted: went('provider-uid', true),
        },
        ['delete consumer consumer-uid'],
      ],
      [
        'keeps the copy from another namespace of the provider',
        { consumer: copyDown({ origin: { providerIdentity: undefined, providerNamespace: 'kb-other-team-a' } }) },
      ],
      [
        'does not overwrite the copy from another provider',
        { provider: provider(), consumer: copyDown({ origin: { providerIdentity: 'other' } }) },
        [],
        { problem: /from another provider/ },
      ],
    ],
    'without an owner label': [
      [
        'skips it and reports a problem',
        { consumer: consumer(), provider: provider({ contentDigest: 'other' }) },
        [],
        {
          problem:
            /it exists on both sides without an owner label; delete one of the two, or label the one to overwrite/,
        },
      ],
      ['reports no problem if no claim selects it', { consumer: consumer(), provider: provider(), claimed: unclaimed }],
    ],
  };
  for (const [group, cases] of Object.entries(groups)) {
    describe(group, () => {
      for (const [what, fields, actions = [], { problem, waitsFor } = {}] of cases) {
        it(what, () => {
          const plan = planClaim(facts(fields));
          const calls = plan.filter(({ do: verb }) => !['wait', 'report', 'requeue'].includes(verb));
          assert.deepEqual(calls.map(brief), actions);
          const problems = plan.flatMap((action) => (action.do === 'report' ? [action.problem] : []));
          const missing = plan.flatMap((action) => (action.do === 'wait' ? [action.missing] : []));
          assert.equal(problems.length, problem ? 1 : 0);
          assert.match(problems.join(), problem ?? /^$/);
          assert.match(missing.join(), waitsFor ?? /^$/);
        });
      }
    });
  }
});

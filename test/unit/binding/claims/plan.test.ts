import assert from 'node:assert/strict';
import { type ClaimFacts, planClaim } from '../../../../src/binding/claims/plan.ts';
import { both, brief, consumer, copyDown, copyUp, facts, provider, shared, unclaimed, went } from './claim-facts.ts';

type Case = readonly [
  what: string,
  facts: Partial<ClaimFacts>,
  actions?: string,
  says?: { readonly problem?: RegExp; readonly waitsFor?: RegExp },
];

/** With the label of the owner: the consumer holds its object, the provider lends it. */
const held = (fields: Parameters<typeof consumer>[0] = {}) => consumer({ owner: 'consumer', ...fields });
const lent = (fields: Parameters<typeof provider>[0] = {}) => provider({ owner: 'provider', ...fields });
const changed = held({ contentDigest: 'new' });
const relabeled = held({ metadataDigest: 'new' });
const evil = lent({ contentDigest: 'evil' });
const ofOtherCluster = copyUp({ consumerUid: 'theirs', copyOf: 'there/team-a/creds' });
const unknownProvider = copyDown({ providerIdentity: undefined, providerNamespace: 'team-a' });
/** The deletion of the original was observed. */
const upWent = went('consumer-uid', true);
const downWent = went('provider-uid', true);
const noNamespace = { kind: 'none' } as const;
const requested = { kind: 'pending' } as const;

describe('the plan for a claimed object', () => {
  const groups: Readonly<Record<string, readonly Case[]>> = {
    'that the consumer owns': [
      ['does nothing without any object', {}],
      ['labels the original, then creates the copy', { consumer: consumer() }, 'label consumer, create provider'],
      ['creates a missing copy', { consumer: held() }, 'create provider'],
      ['does nothing if both are in sync', both(held(), copyUp())],
      ['updates new content', both(changed, copyUp()), 'update provider'],
      ['updates new metadata', both(relabeled, copyUp()), 'update provider'],
      [
        'restores the owner label of the original after another client removed it',
        both(consumer(), copyUp()),
        'label consumer',
      ],
      ['restores the copied label', both(held(), copyUp({ owner: undefined })), 'update provider'],
      [
        'adds the annotations that an older konnector did not set',
        both(held(), copyUp({ consumerNamespace: undefined, consumerUid: undefined })),
        'update provider',
      ],
      [
        'adopts the copy of an earlier object of that name',
        both(held(), copyUp({ consumerUid: 'earlier' })),
        'update provider',
      ],
      [
        'replaces a copy of another type',
        both(held({ type: 'kubernetes.io/tls', contentDigest: 'new' }), copyUp()),
        'delete provider',
      ],
      [
        'replaces an immutable copy with different content',
        both(changed, copyUp({ immutable: true })),
        'delete provider',
      ],
      ['updates the labels of an immutable copy', both(relabeled, copyUp({ immutable: true })), 'update provider'],
      [
        'waits for a copy that is being deleted',
        both(changed, copyUp({ deleting: true })),
        '',
        { waitsFor: /the deletion of the copy/ },
      ],
      ['copies nothing that is being deleted', { consumer: consumer({ deleting: true }) }],
      ['keeps the copy until the original is deleted', both(held({ deleting: true, contentDigest: 'new' }), copyUp())],
      ['requests a service namespace', { consumer: consumer(), serviceNamespace: noNamespace }, 'requestNamespace'],
      [
        'requests none while the namespace is being deleted',
        { consumer: consumer(), serviceNamespace: noNamespace, isNamespaceActive: false },
      ],
      ['requests none without a claim', { consumer: held(), claimed: unclaimed, serviceNamespace: noNamespace }],
      [
        'waits for a requested service namespace',
        { consumer: consumer(), serviceNamespace: requested },
        '',
        { waitsFor: /the provider's namespace for team-a/ },
      ],
      [
        'does not change an object of the provider that is no copy, and reports it',
        both(held(), provider()),
        '',
        { problem: /the provider's object kb-acme-team-a\/creds is not a copy of it; rename yours/ },
      ],
    ],
    'that is no longer selected': [
      ['changes neither of them', { consumer: changed, provider: copyUp(), claimed: unclaimed }],
      [
        'deletes the copy with its original',
        { provider: copyUp(), claimed: unclaimed, deleted: upWent },
        'delete provider',
      ],
      [
        'deletes the copy in the consumer with its original',
        { consumer: copyDown(), claimed: unclaimed, deleted: downWent },
        'delete consumer',
      ],
    ],
    'whose original in the consumer is deleted': [
      ['deletes the copy', { provider: copyUp(), deleted: upWent }, 'delete provider'],
      [
        'marks the delete as inferred after a list',
        { provider: copyUp(), deleted: went('consumer-uid', false) },
        'delete provider inferred',
      ],
      ['marks the delete as inferred after a start', { provider: copyUp() }, 'delete provider inferred'],
      [
        'keeps the copy of another cluster with the same kubeconfig',
        { provider: copyUp({ copyOf: 'there/team-a/creds' }) },
      ],
      ['keeps a clone of a copy under another name', { provider: copyUp({ copyOf: 'here/team-a/other' }) }],
      [
        'keeps a copy with proof while the identity of this cluster is not known',
        { provider: copyUp(), consumerCluster: undefined },
      ],
      ['keeps a copy without proof, as kube-bind writes it', { provider: copyUp({ copyOf: undefined }) }],
      [
        'deletes the copy of an observed deletion, also of a cluster with another identity',
        { provider: copyUp({ copyOf: 'there/team-a/creds' }), deleted: upWent },
        'delete provider',
      ],
      ['keeps a copy that names no original', { provider: copyUp({ consumerUid: undefined }) }],
      ['keeps a copy of another namespace', { provider: copyUp({ consumerNamespace: 'team-b' }) }],
      ['does not delete a copy that is being deleted', { provider: copyUp({ deleting: true }) }],
      ['keeps a copy in a namespace that is not ready', { provider: copyUp(), serviceNamespace: requested }],
    ],
    'in a namespace that consumers share': [
      ['keeps the copy of another consumer', { provider: ofOtherCluster, serviceNamespace: shared }],
      [
        'deletes a copy with proof of this cluster and name',
        { provider: copyUp(), serviceNamespace: shared },
        'delete provider inferred',
      ],
      [
        'does not overwrite the object of another consumer',
        { consumer: changed, provider: ofOtherCluster, serviceNamespace: shared },
        '',
        { problem: /belongs to another consumer, or to an earlier object of this name/ },
      ],
      [
        'adopts the copy of a recently deleted object',
        {
          consumer: held(),
          provider: copyUp({ consumerUid: 'earlier' }),
          serviceNamespace: shared,
          deleted: went('earlier', true),
        },
        'update provider',
      ],
      [
        'deletes the copy of a deleted object',
        { provider: copyUp(), serviceNamespace: shared, deleted: upWent },
        'delete provider',
      ],
    ],
    'that the provider owns': [
      ['labels the original, then creates the copy', { provider: provider() }, 'label provider, create consumer'],
      ['does nothing if both are in sync', { provider: lent(), consumer: copyDown() }],
      [
        'does not write a copy that another konnector synced',
        { provider: lent(), consumer: copyDown({ providerIdentity: undefined }) },
      ],
      ['updates new content', { provider: lent({ contentDigest: 'new' }), consumer: copyDown() }, 'update consumer'],
      [
        'deletes the copy with its original',
        { provider: lent({ deleting: true }), consumer: copyDown() },
        'delete consumer',
      ],
      [
        'marks the delete as inferred without an observed deletion',
        { consumer: copyDown() },
        'delete consumer inferred',
      ],
      ['deletes no copy without uid of its original', { consumer: copyDown({ providerUid: undefined }) }],
      ['keeps an object that only has the owner label of the provider', { consumer: consumer({ owner: 'provider' }) }],
      [
        'overwrites no object without an owner label, even if the provider labels its own',
        { provider: evil, consumer: consumer() },
        '',
        { problem: /has its own object of this name, which would overwrite it; rename/ },
      ],
      [
        'overwrites no object that the consumer owns',
        { provider: evil, consumer: held() },
        '',
        {
          problem:
            /the owner labels of the two objects differ; delete the copy, and set the label kube-bind\.io\/owner of the original/,
        },
      ],
      ['reports no problem of labels without a claim', { provider: evil, consumer: held(), claimed: unclaimed }],
      ['writes nothing because of an owner label alone', { provider: evil, consumer: copyDown(), claimed: unclaimed }],
      [
        'copies no provider object to a system namespace',
        { provider: lent(), consumerNamespace: 'kube-system' },
        '',
        { problem: /system namespace/ },
      ],
      [
        'copies no new object to a namespace without bound objects',
        { provider: lent(), mayCopyToConsumer: false },
        '',
        { waitsFor: /a bound object in the namespace team-a/ },
      ],
      [
        'still updates an existing copy there',
        { provider: lent({ contentDigest: 'new' }), consumer: copyDown(), mayCopyToConsumer: false },
        'update consumer',
      ],
      ['waits for the namespace', { provider: lent(), isNamespaceActive: false }, '', { waitsFor: /namespace team-a/ }],
      [
        'keeps the copy from another provider',
        { consumer: copyDown({ providerIdentity: 'other', providerUid: 'theirs' }) },
      ],
      [
        'keeps a copy whose provider cannot be determined',
        { consumer: copyDown({ providerUid: 'theirs' }), providerIdentity: undefined },
      ],
      [
        'does not overwrite a copy whose provider cannot be determined',
        {
          provider: lent({ contentDigest: 'new' }),
          consumer: copyDown({ providerUid: 'theirs' }),
          providerIdentity: undefined,
        },
      ],
      [
        'recognizes a copy by its original while the provider is not identified',
        { provider: lent({ contentDigest: 'new' }), consumer: copyDown(), providerIdentity: undefined },
        'update consumer',
      ],
      [
        'deletes the copy of a deleted original while the provider is not identified',
        { consumer: copyDown(), providerIdentity: undefined, deleted: downWent },
        'delete consumer',
      ],
      [
        'keeps a copy in a shared namespace that does not name its provider',
        { consumer: unknownProvider, serviceNamespace: shared },
      ],
      [
        'deletes such a copy if the deletion of its original was observed',
        { consumer: unknownProvider, serviceNamespace: shared, deleted: downWent },
        'delete consumer',
      ],
      [
        'keeps the copy from another namespace of the provider',
        { consumer: copyDown({ providerIdentity: undefined, providerNamespace: 'kb-other-team-a' }) },
      ],
      [
        'does not overwrite the copy from another provider',
        { provider: provider(), consumer: copyDown({ providerIdentity: 'other' }) },
        '',
        { problem: /from another provider/ },
      ],
    ],
    'without an owner label': [
      [
        'skips it and reports a problem',
        both(consumer(), provider({ contentDigest: 'other' })),
        '',
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
      for (const [what, fields, actions = '', { problem, waitsFor } = {}] of cases) {
        it(what, () => {
          const plan = planClaim(facts(fields));
          const calls = plan.filter(({ do: verb }) => !['wait', 'report', 'requeue'].includes(verb));
          assert.equal(calls.map(brief).join(', '), actions);
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

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ClaimedView } from '../../../../src/binding/claims/claimed-view.ts';
import { type ClaimFacts, type ClaimWrite, planClaim } from '../../../../src/binding/claims/plan.ts';
import type { Side } from '../../../../src/binding/sync-engine/syncer.ts';
import { runs } from '../../../support/runs.ts';
import { brief, facts, shared, view, went } from './claim-facts.ts';

describe('the plan for any claimed object', () => {
  const anyView = (side: Side): fc.Arbitrary<ClaimedView | undefined> =>
    fc.option(
      fc
        .record({
          owner: fc.constantFrom('consumer' as const, 'provider' as const, undefined),
          deleting: fc.boolean(),
          contentDigest: fc.constantFrom('a', 'b'),
          metadataDigest: fc.constantFrom('a', 'b'),
          type: fc.constantFrom('Opaque', 'tls'),
          immutable: fc.boolean(),
          consumerNamespace: fc.constantFrom('team-a', 'team-b', undefined),
          consumerUid: fc.constantFrom('consumer-uid', 'earlier', 'theirs', undefined),
          copyOf: fc.constantFrom('here/team-a/creds', 'there/team-a/creds', undefined),
          providerNamespace: fc.constantFrom('kb-acme-team-a', 'team-a', 'kb-other', undefined),
          providerUid: fc.constantFrom('provider-uid', 'earlier', undefined),
          providerIdentity: fc.constantFrom('acme', 'other', undefined),
        })
        .map((fields) => view(side, fields)),
      { nil: undefined },
    );
  const anyFacts: fc.Arbitrary<ClaimFacts> = fc
    .record({
      consumer: anyView('consumer'),
      provider: anyView('provider'),
      claimed: fc.record({ consumer: fc.boolean(), provider: fc.boolean() }),
      isNamespaceActive: fc.boolean(),
      mayCopyToConsumer: fc.boolean(),
      consumerNamespace: fc.constantFrom('team-a', 'kube-system'),
      serviceNamespace: fc.constantFrom(
        { kind: 'none' as const },
        { kind: 'pending' as const },
        { kind: 'ready' as const, name: 'kb-acme-team-a' },
        shared,
      ),
      providerIdentity: fc.constantFrom('acme', undefined),
      gone: fc.constantFrom(went('earlier', true), went('consumer-uid', false), went('provider-uid', true)),
    })
    .map((fields) => facts(fields));

  it('never writes an unselected object, and never deletes or overwrites an object that is not provably a copy', () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const { consumer: ours, provider: theirs, claimed, serviceNamespace } = given;
        const actions = planClaim(given);
        if (actions.some((action) => action.do === 'report')) assert.equal(actions.length, 1);
        for (const action of actions) {
          if (action.do === 'requestNamespace') assert.ok(ours && claimed.consumer);
          if (!('side' in action)) continue;
          assert.equal(serviceNamespace.kind, 'ready');
          const [target, source] = action.side === 'consumer' ? [ours, theirs] : [theirs, ours];
          if (action.do === 'label') {
            assert.ok(target && claimed[action.side]);
            assert.equal(target.owner, undefined);
          } else if (action.do === 'delete') {
            assert.equal(action.uid, target?.uid);
            const isReplaced = source && !source.deleting;
            if (isReplaced) assert.ok(claimed[action.side === 'consumer' ? 'provider' : 'consumer']);
            if (action.side === 'consumer') assert.equal(target?.owner, 'provider');
            else assert.ok(target?.origin.consumerUid || isReplaced);
          } else {
            assert.ok(source && !source.deleting && claimed[action.side === 'consumer' ? 'provider' : 'consumer']);
            if (action.do === 'create') assert.ok(!target && (action.side === 'provider' || given.mayCopyToConsumer));
            else if (action.side === 'consumer') assert.equal(target?.owner, 'provider');
            else assert.ok(target?.owner === 'consumer' || target?.origin.consumerUid === ours?.uid);
          }
        }
      }),
      { seed: 31, numRuns: runs(10_000) },
    );
  });

  it('is empty after its actions', () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        let state = given;
        for (let round = 0; round < 4; round++) {
          const actions = planClaim(state).filter((action) => 'side' in action);
          if (actions.length === 0) return;
          for (const action of actions) state = performed(action, state);
        }
        assert.fail(`still has to do: ${planClaim(state).map(brief).join(', ')}`);
      }),
      { seed: 32, numRuns: runs(10_000) },
    );
  });
});

/** Applies an action as an API server would. */
function performed(action: ClaimWrite, state: ClaimFacts): ClaimFacts {
  const { side } = action;
  const present = state[side];
  const source = side === 'consumer' ? state.provider : state.consumer;
  if (action.do === 'delete') return { ...state, [side]: undefined };
  if (action.do === 'label') return { ...state, [side]: present && { ...present, owner: side } };
  if (!source) throw new Error('a copy of nothing');
  if (action.do === 'update' && present?.type !== source.type) throw new Error('a type cannot be changed');
  const { owner, origin } = action.identity;
  const { contentDigest, metadataDigest, type, immutable } = source;
  const before = present ?? view(side);
  const copied = { owner, contentDigest, metadataDigest, type, immutable, origin: { ...before.origin, ...origin } };
  return { ...state, claimed: { ...state.claimed, [side]: true }, [side]: { ...before, ...copied } };
}

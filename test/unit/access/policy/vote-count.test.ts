import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type CountedVote, countVotes, votesNeeded } from '../../../../src/access/policy/vote-count.ts';
import type { ApprovalEntry } from '../../../../src/api/access/access-config.ts';

let made = 0;
const vote = (username: string, groups: readonly string[] = [], uid = ''): CountedVote => {
  made += 1;
  return { uid: `v${String(made).padStart(6, '0')}`, voter: { username, uid, groups }, createdAtMs: made };
};
const entry = (name: string, count: number, groups?: string[]): ApprovalEntry => ({
  name,
  count,
  ...(groups ? { groups } : {}),
});
const haves = (entries: readonly ApprovalEntry[], votes: readonly CountedVote[]): string =>
  countVotes(entries, votes)
    .progress.map(({ name, have, need }) => `${name} ${have}/${need}`)
    .join(', ');

describe('counting votes', () => {
  it('meets an entry without groups by any voter', () => {
    const votes = [vote('carol')];
    const { met } = countVotes([entry('any', 1)], votes);
    assert.deepEqual(met, { votes, atMs: votes[0]?.createdAtMs });
  });

  it('needs a member of the groups of an entry', () => {
    const entries = [entry('security', 1, ['secops'])];
    assert.equal(haves(entries, [vote('carol', ['devs'])]), 'security 0/1');
    assert.equal(haves(entries, [vote('carol', ['devs', 'secops'])]), 'security 1/1');
  });

  it('needs one vote for an entry without a count', () => {
    const entries: ApprovalEntry[] = [{ name: 'peer' }, entry('security', 2)];
    assert.equal(votesNeeded(entries), 3);
    assert.equal(haves(entries, [vote('carol')]), 'peer 1/1, security 0/2');
    assert.ok(countVotes([{ name: 'peer' }], [vote('carol')]).met);
  });

  it('counts one person for one entry only', () => {
    const entries = [entry('peer', 1, ['devs']), entry('security', 1, ['secops'])];
    assert.equal(haves(entries, [vote('carol', ['devs', 'secops'])]), 'peer 1/1, security 0/1');
  });

  it('moves a person to another entry if that makes room', () => {
    const entries = [entry('peer', 1, ['devs']), entry('security', 1, ['secops'])];
    const votes = [vote('carol', ['devs', 'secops']), vote('dave', ['devs'])];
    assert.equal(haves(entries, votes), 'peer 1/1, security 1/1');
    assert.deepEqual(countVotes(entries, votes).met?.votes, votes);
  });

  for (const [what, first, second] of [
    ['the same user name', vote('carol'), vote('carol')],
    ['the same uid under another name', vote('carol', [], 'u-1'), vote('carol@example.org', [], 'u-1')],
  ] as const) {
    it(`counts two votes with ${what} once`, () => {
      assert.equal(haves([entry('two', 2)], [first, second]), 'two 1/2');
    });
  }

  it('tells people without uids apart by their names', () => {
    assert.equal(haves([entry('two', 2)], [vote('carol'), vote('dave')]), 'two 2/2');
  });

  it('rests on the oldest votes that are enough, and on no later one', () => {
    const votes = [vote('carol'), vote('dave'), vote('erin')];
    const { met } = countVotes([entry('two', 2)], [...votes].reverse());
    assert.deepEqual(
      met?.votes.map(({ voter }) => voter.username),
      ['carol', 'dave'],
    );
    assert.equal(met?.atMs, votes[1]?.createdAtMs);
  });

  const groups = ['a', 'b', 'c'];
  const anyEntry = fc.record({
    count: fc.integer({ min: 1, max: 3 }),
    groups: fc.option(fc.subarray(groups, { minLength: 1 })),
  });
  const anyVoter = fc.record({ name: fc.constantFrom('p', 'q', 'r', 's', 't', 'u'), groups: fc.subarray(groups) });

  it('finds an assignment exactly if there is one', () => {
    fc.assert(
      fc.property(
        fc.array(anyEntry, { minLength: 1, maxLength: 3 }),
        fc.uniqueArray(anyVoter, { maxLength: 6, selector: ({ name }) => name }),
        (specs, voters) => {
          const entries = specs.map((spec, index) => entry(`e${index}`, spec.count, spec.groups ?? undefined));
          const votes = voters.map((voter) => vote(voter.name, voter.groups));
          const places = entries.flatMap((one) => Array.from({ length: one.count ?? 1 }, () => one));
          assert.equal(countVotes(entries, votes).met !== undefined, canFill(places, votes));
        },
      ),
    );
  });
});

/** By trying every assignment. */
function canFill([place, ...rest]: readonly ApprovalEntry[], votes: readonly CountedVote[]): boolean {
  if (!place) return true;
  return votes.some(
    (vote, index) =>
      (place.groups === undefined || vote.voter.groups.some((group) => place.groups?.includes(group))) &&
      canFill(rest, votes.toSpliced(index, 1)),
  );
}

import type { ApprovalEntry } from '../../api/access/access-config.ts';

/** A valid approval: the server has just checked its voter, template, and permission. */
export interface CountedVote {
  /** Of the AccessVote. */
  readonly uid: string;
  readonly voter: { readonly username: string; readonly uid: string; readonly groups: readonly string[] };
  /** Epoch ms. */
  readonly createdAtMs: number;
}

/** Of one entry of `approvals.all`: people who have approved, and people who must. */
export interface EntryCount {
  readonly name: string;
  readonly have: number;
  readonly need: number;
}

export interface VoteCount<Vote extends CountedVote> {
  /** In the order of `approvals.all`. */
  readonly progress: readonly EntryCount[];
  /** Oldest first; the last came at `atMs` (epoch ms). Undefined while an entry lacks votes. */
  readonly met: { readonly votes: readonly Vote[]; readonly atMs: number } | undefined;
}

export const votesNeeded = (entries: readonly ApprovalEntry[]): number =>
  entries.reduce((sum, { count = 1 }) => sum + count, 0);

/**
 * Every entry needs `count` people of its groups, and a person (username or uid) counts for one
 * only. In the order of creation, so that no later vote changes when the entries were met.
 */
export function countVotes<Vote extends CountedVote>(
  entries: readonly ApprovalEntry[],
  votes: readonly Vote[],
): VoteCount<Vote> {
  /** One for each person that an entry needs. */
  const places = entries.flatMap((entry) => Array.from({ length: entry.count ?? 1 }, () => entry));
  /** The vote that fills a place. */
  const filled = new Map<number, Vote>();
  for (const vote of onePerPerson(votes)) {
    fill(vote, places, filled, new Set());
    if (filled.size === places.length) {
      const used = [...filled.values()].sort(byAge);
      return { progress: countsOf(entries, places, filled), met: { votes: used, atMs: vote.createdAtMs } };
    }
  }
  return { progress: countsOf(entries, places, filled), met: undefined };
}

/** Moves other votes if necessary (an augmenting path of a bipartite matching). */
function fill<Vote extends CountedVote>(
  vote: Vote,
  places: readonly ApprovalEntry[],
  filled: Map<number, Vote>,
  tried: Set<number>,
): boolean {
  for (const [place, entry] of places.entries()) {
    if (tried.has(place) || !fits(vote, entry)) continue;
    tried.add(place);
    const holder = filled.get(place);
    if (holder === undefined || fill(holder, places, filled, tried)) {
      filled.set(place, vote);
      return true;
    }
  }
  return false;
}

export const fits = (
  { voter }: { readonly voter: Pick<CountedVote['voter'], 'groups'> },
  { groups }: ApprovalEntry,
): boolean => groups === undefined || voter.groups.some((group) => groups.includes(group));

/** Votes of the same second are in the order of their uids, so that every replica counts alike. */
function onePerPerson<Vote extends CountedVote>(votes: readonly Vote[]): Vote[] {
  const names = new Set<string>();
  const uids = new Set<string>();
  return [...votes].sort(byAge).filter(({ voter }) => {
    const isKnown = names.has(voter.username) || (voter.uid !== '' && uids.has(voter.uid));
    names.add(voter.username);
    if (voter.uid !== '') uids.add(voter.uid);
    return !isKnown;
  });
}

const byAge = (a: CountedVote, b: CountedVote): number =>
  a.createdAtMs - b.createdAtMs || (a.uid < b.uid ? -1 : Number(a.uid > b.uid));

function countsOf(
  entries: readonly ApprovalEntry[],
  places: readonly ApprovalEntry[],
  filled: ReadonlyMap<number, CountedVote>,
): EntryCount[] {
  return entries.map((entry) => ({
    name: entry.name,
    have: places.filter((place, index) => place === entry && filled.has(index)).length,
    need: entry.count ?? 1,
  }));
}

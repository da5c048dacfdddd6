import assert from 'node:assert/strict';
import fc from 'fast-check';
import { accessStartMs } from '../../../../src/access/lifecycle/request-ends.ts';
import { accessEndMs, type RequestView, viewRequest } from '../../../../src/access/stores/access-views.ts';
import type { ApprovalEntry } from '../../../../src/api/access/access-config.ts';
import { accessVotes } from '../../../../src/api/access/access-vote.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import { podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import { configMaps, roleBindings } from '../../../../src/api/resources.ts';
import { formatTime, parseTime } from '../../../../src/kit/clock.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { runs } from '../../../support/runs.ts';
import { LifecycleStage, requestName, templateName } from './lifecycle-stage.ts';

const minute = 60_000;
const approvedBy = (all: readonly ApprovalEntry[], more: object = {}) => ({
  all,
  pendingFor: '1h',
  serviceAccounts: false,
  ...more,
});
const peer = { name: 'peer', count: 1 };
/** What an edit makes the template ask for. */
const approvals = {
  one: approvedBy([peer]),
  two: approvedBy([{ name: 'peer', count: 2 }]),
  lead: approvedBy([peer, { name: 'lead', count: 1, groups: ['leads'] }]),
  claim: approvedBy([peer], { claimWithin: '20m' }),
  none: undefined,
};
const extension = { times: 2, total: '30m', approvals: 'Same' };
const grantedMs = 10 * minute;
const totalMs = 30 * minute;
const emergency = { groups: ['oncall'], maxDuration: '5m', reviewWithin: '1h' };
/** The longest delay of an end: the retry of a call that failed. */
const slackMs = 3000;

const voters = ['alice', 'carol', 'dave', 'eve'] as const;
type Voter = (typeof voters)[number];
const groupsOf = (voter: Voter): readonly string[] => (voter === 'dave' ? ['devs', 'leads'] : ['devs']);

/** What alice asks for. */
interface Asked {
  readonly emergency: boolean;
  /** Minutes until `spec.startAt`; 0: without it. */
  readonly startIn: number;
  /** Whether the name was generated, so that the request stays after its end. */
  readonly generated: boolean;
}

type Action =
  | {
      readonly do: 'vote';
      readonly voter: Voter;
      readonly about: string;
      readonly denies: boolean;
    }
  | { readonly do: 'right'; readonly voter: Voter; readonly holds: boolean }
  | { readonly do: 'edit'; readonly to: keyof typeof approvals | 'another maxDuration' }
  /** From `lag` to `catchUp`, the leader sees no edit. */
  | { readonly do: 'claim' | 'revoke' | 'lag' | 'catchUp' }
  | { readonly do: 'extend'; readonly minutes: number }
  | { readonly do: 'setBack'; readonly minutes: number }
  | { readonly do: 'pass'; readonly minutes: number };

interface Step {
  readonly action: Action;
  /** What happens to the n-th call of the controller after the action. */
  readonly trouble?: { readonly atCall: number; readonly kind: 'leader stops' | 'conflict' | 'error' };
}

const voter = fc.constantFrom(...voters);
function votes({ about, denialsOfSix }: { readonly about: readonly string[]; readonly denialsOfSix: number }) {
  return fc.record({
    do: fc.constant('vote' as const),
    voter,
    about: fc.constantFrom(...about),
    denies: fc.integer({ min: 0, max: 5 }).map((dice) => dice < denialsOfSix),
  });
}

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: votes({ about: ['Access'], denialsOfSix: 1 }) },
  { weight: 4, arbitrary: votes({ about: ['Extension-1', 'Extension-2', 'Review'], denialsOfSix: 3 }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('extend' as const),
      minutes: fc.integer({ min: 1, max: 25 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), minutes: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('right' as const), voter, holds: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('setBack' as const), minutes: fc.integer({ min: 1, max: 90 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('edit' as const),
      to: fc.constantFrom('one', 'two', 'lead', 'claim', 'none', 'another maxDuration', 'another maxDuration'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
    }),
  },
  { weight: 3, arbitrary: fc.constantFrom<Action>({ do: 'lag' }, { do: 'catchUp' }) },
  { weight: 1, arbitrary: fc.constant<Action>({ do: 'revoke' }) },
);
const asked: fc.Arbitrary<Asked> = fc.record({
  emergency: fc.integer({ min: 0, max: 7 }).map((dice) => dice === 0),
  startIn: fc.integer({ min: -30, max: 20 }).map((minutes) => Math.max(0, minutes)),
  generated: fc.boolean(),
});
const trouble = fc.record({
  atCall: fc.integer({ min: 0, max: 10 }),
  kind: fc.constantFrom('leader stops' as const, 'conflict' as const, 'error' as const),
});
const step: fc.Arbitrary<Step> = fc.record({ action, trouble }, { requiredKeys: ['action'] });

const vote = (by: Voter, about: string, denies = false): Action => ({
  do: 'vote',
  voter: by,
  about,
  denies,
});
const approval: Step = { action: vote('carol', 'Access') };
/** One person approves the extension of open access, and another denies it. */
const disputedExtension: fc.Arbitrary<Step[]> = fc
  .tuple(fc.boolean(), fc.option(trouble, { nil: undefined }))
  .map(([deniesFirst, problem]) => {
    const extend: Step = { action: { do: 'extend', minutes: 5 } };
    const denial = { action: vote('dave', 'Extension-1', true), ...(problem ? { trouble: problem } : {}) };
    const consent = { action: vote('carol', 'Extension-1') };
    return [approval, extend, ...(deniesFirst ? [denial, consent] : [consent, denial])];
  });
/** The template asks for more while the leader does not see it, and people vote for it as it is now. */
const unseenEdit: fc.Arbitrary<Step[]> = fc
  .constantFrom<keyof typeof approvals>('two', 'lead', 'claim')
  .map((to) => [{ action: { do: 'lag' } }, { action: { do: 'edit', to } }, approval]);
const consentAndClaim: Step[] = [{ action: { do: 'edit', to: 'claim' } }, { action: { do: 'claim' } }, approval];
/** Most random histories would never open access, or never come to one of these. */
const beginning: fc.Arbitrary<{ readonly asked: Asked; readonly steps: readonly Step[] }> = fc.oneof(
  fc.record({ asked, steps: fc.constantFrom<Step[]>([], [approval]) }),
  fc.record({ asked, steps: disputedExtension }),
  fc.record({ asked, steps: unseenEdit }),
  fc.record({ asked, steps: fc.constant(consentAndClaim) }),
  // A denial of a request that waits for no votes.
  fc.constant({
    asked: { emergency: false, startIn: 5, generated: true },
    steps: [
      { action: { do: 'edit', to: 'none' } },
      { action: vote('dave', 'Access', true) },
      { action: { do: 'pass', minutes: 6 } },
    ] satisfies Step[],
  }),
);

/** One version of the template. */
interface Version {
  readonly generation: number;
  readonly approvals: (typeof approvals)[keyof typeof approvals];
}

interface CastVote {
  readonly voter: Voter;
  readonly about: string;
  readonly denies: boolean;
  readonly generation: number;
}

/** One history on the real controllers, and beside it what the votes were worth at each moment. */
class History {
  readonly stage = new LifecycleStage();
  readonly #approvers = new Set<Voter>(['carol', 'dave', 'alice']);
  readonly #votes = new Map<string, CastVote>();
  readonly #wallMs = this.stage.clock.now();
  readonly #asked: Asked;
  readonly #versions: Version[] = [];
  /** What the leader may have seen of them during the step. */
  #seen: Version[] = [];
  #lags = false;
  /** Grants and extensions that were checked. */
  readonly #checked = new Set<string>();
  /** On the monotonic clock. */
  #openedMs: number | undefined;
  #edits = 0;
  /** How many RoleBindings the leader had created, or tried to, when access was revoked or denied, or ended; undefined until then. */
  #openingsAtEnd: number | undefined;
  #claimed = false;
  opened = false;
  extended = false;
  refused = false;
  /** Whether the request was still there after its end. */
  kept = false;

  constructor(asked: Asked) {
    this.#asked = asked;
  }

  async start(): Promise<void> {
    const { stage } = this;
    stage.cluster.allows = ({ user, verb }) => verb === 'approve' && this.#approvers.has(user as Voter);
    this.#configure('one', { extension, emergency, start: { maxAhead: '1h' } });
    await stage.start();
    const { startIn, generated } = this.#asked;
    const emergencySpec = { emergency: true, reason: 'the database is down' };
    if (this.#asked.emergency) stage.ask(emergencySpec, { groups: ['oncall'], generated });
    else if (startIn > 0) stage.ask({ startAt: formatTime(stage.clock.now() + startIn * minute) }, { generated });
    else stage.ask({}, { generated });
    await stage.clock.advance(100);
    this.check();
  }

  async run({ action, trouble }: Step): Promise<void> {
    const { cluster } = this.stage;
    this.#seen = this.#seen.slice(-1);
    let calls = 0;
    if (trouble) {
      cluster.fault = () => {
        if (calls++ !== trouble.atCall) return undefined;
        if (trouble.kind === 'leader stops') return new Promise(() => {});
        if (trouble.kind === 'conflict') throw new ApiError(409, 'Conflict', 'changed');
        throw new ApiError(500, 'InternalError', 'not now');
      };
    }
    this.#act(action);
    // No time passes while a call hangs: a hanging call may be the one that ends access.
    await this.stage.clock.advance(100);
    if (trouble?.kind === 'leader stops') await this.#changeLeader();
    cluster.fault = () => {};
    this.check();
    if (action.do === 'pass') {
      await this.stage.clock.advance(action.minutes * minute);
      this.check();
    }
    if (trouble) await this.stage.clock.advance(slackMs);
    this.check();
    if (this.#openingsAtEnd === undefined) return;
    assert.equal(this.#isOpen(), false, 'access is closed after its end');
    assert.equal(this.#openings(), this.#openingsAtEnd, 'access does not open after its end');
  }

  async finish(): Promise<void> {
    await this.stage.clock.advance(4 * 60 * minute);
    assert.equal(this.#isOpen(), false, 'access ends');
    await this.stage.stop();
  }

  /** What is open rests on votes that were valid just now, and lasts no longer than granted. */
  check(): void {
    const { request, clock } = this.stage;
    const view = request && viewRequest(request);
    const { grant } = view ?? {};
    if (view && grant && !this.#checked.has('grant')) {
      this.#checked.add('grant');
      this.#assertGrant(view, grant);
      this.#openedMs = clock.monotonic();
      this.opened = true;
      assert.ok((accessEndMs({ ...view, extensions: [] }) ?? 0) - accessStartMs(view) <= grantedMs);
    }
    for (const [index, entry] of (view?.extensions ?? []).entries()) {
      if (entry.message?.startsWith('VoteDenied: ')) this.refused = true;
      if (entry.state !== 'Granted' || this.#checked.has(`${index}`)) continue;
      this.#checked.add(`${index}`);
      this.#assertExtension(entry.votes, `Extension-${index + 1}`);
      this.extended = true;
    }
    if (view?.ended) {
      this.kept = true;
      this.#openingsAtEnd ??= this.#openings();
      assert.equal(this.#isOpen(), false, 'what has ended is closed');
      assert.deepEqual([view.ready, view.children], [false, []]);
    }
    if (!this.#isOpen()) return;
    assert.ok(this.#openedMs !== undefined, 'access is open with a grant only');
    const endMs = view ? (accessEndMs(view) ?? 0) - accessStartMs(view) : 0;
    const openMs = clock.monotonic() - this.#openedMs;
    assert.ok(openMs <= endMs + slackMs, `open for ${openMs} ms of ${endMs}`);
    assert.ok(endMs <= totalMs);
  }

  #act(action: Action): void {
    const { stage } = this;
    switch (action.do) {
      case 'vote':
        this.#vote(action);
        break;
      case 'right':
        if (action.holds && action.voter !== 'eve') this.#approvers.add(action.voter);
        else this.#approvers.delete(action.voter);
        break;
      case 'edit':
        this.#configure(action.to, { maxDuration: `${24 + ++this.#edits}h` });
        break;
      case 'lag':
        this.#lags = true;
        stage.cluster.lagging = podAccessTemplates;
        break;
      case 'catchUp':
        this.#catchUp();
        break;
      case 'claim':
        this.#claim();
        break;
      case 'setBack':
        stage.clock.setWall(stage.clock.now() - action.minutes * minute);
        break;
      case 'extend':
        if (stage.request) stage.extend(`${action.minutes}m`);
        break;
      case 'revoke':
        if (stage.request) {
          stage.change({ revoked: true });
          this.#openingsAtEnd ??= this.#openings();
        }
        break;
      case 'pass':
        break;
    }
  }

  #configure(to: keyof typeof approvals | 'another maxDuration', config: object): void {
    const isOther = to !== 'another maxDuration';
    this.stage.configure({ ...config, ...(isOther ? { approvals: approvals[to] } : {}) });
    const generation = this.stage.cluster.find(podAccessTemplates, templateName)?.metadata.generation ?? 0;
    this.#versions.push({ generation, approvals: isOther ? approvals[to] : this.#current().approvals });
    if (!this.#lags) this.#seen.push(this.#current());
  }

  #catchUp(): void {
    this.#lags = false;
    this.stage.cluster.deliverEvents();
    this.#seen.push(this.#current());
  }

  #claim(): void {
    const { stage } = this;
    if (!stage.request || (stage.request.spec as { claimed?: boolean }).claimed) return;
    this.#claimed = true;
    stage.claim();
  }

  /** A person has one vote for each question, decision, and, for an approval, version, because the name of the vote says so. */
  #vote({ voter: name, about, denies }: Extract<Action, { do: 'vote' }>): void {
    const { stage } = this;
    const { generation } = this.#current();
    const isCast = [...this.#votes.values()].some(
      (vote) =>
        vote.voter === name &&
        vote.about === about &&
        vote.denies === denies &&
        (denies || about === 'Review' || vote.generation === generation),
    );
    if (isCast || !stage.request) return;
    const voteName = stage.vote(
      { username: name, uid: '', groups: groupsOf(name) },
      { about, decision: denies ? 'Deny' : 'Approve' },
    );
    const uid =
      stage.cluster.find(accessVotes, { namespace: requestName.namespace, name: voteName })?.metadata.uid ?? '';
    this.#votes.set(uid, { voter: name, about, denies, generation });
    if (about === 'Access' && denies && this.#isValid(uid)) this.#openingsAtEnd ??= this.#openings();
  }

  /** The clock of the new leader is right: a server trusts its clock when it starts. */
  async #changeLeader(): Promise<void> {
    const { stage } = this;
    await stage.stop();
    stage.cluster.fault = () => {};
    // A new leader lists the templates.
    this.#catchUp();
    stage.clock.setWall(this.#wallMs + stage.clock.monotonic());
    await stage.start();
    await stage.clock.advance(100);
  }

  #assertGrant(view: RequestView, { template, votes }: Grant): void {
    const version = this.#versions.find(({ generation }) => generation === template.generation);
    assert.ok(version && this.#seen.includes(version), 'the terms are those that the leader saw');
    this.#assertNotDenied('Access');
    if (this.#asked.emergency) {
      assert.equal(votes, undefined);
      assert.equal(this.stage.cluster.names(configMaps).length, 1, 'a review is owed');
      return;
    }
    const startAtMs = parseTime(view.spec.startAt ?? '') ?? 0;
    assert.ok(accessStartMs(view) >= startAtMs, 'access begins at startAt or later');
    if (!version.approvals) {
      assert.equal(votes, undefined);
      return;
    }
    assert.equal(version, this.#current());
    this.#assertMet(votes, 'Access');
    assert.ok(this.#claimed || !('claimWithin' in version.approvals), 'the requester claimed it');
  }

  #assertExtension(votes: readonly string[] | undefined, about: string): void {
    assert.ok(!this.#asked.emergency, 'an emergency is not extended');
    if (votes === undefined && this.#seen.some((version) => !version.approvals)) return;
    this.#assertMet(votes, about);
    this.#assertNotDenied(about);
  }

  /** The votes are valid, of different people, and fill all entries of the template as it is now. */
  #assertMet(uids: readonly string[] | undefined, about: string): void {
    const votes = (uids ?? []).map((uid) => this.#votes.get(uid));
    const people = votes.map((vote, index) => {
      const isValid = vote?.about === about && !vote.denies && this.#isValid(uids?.[index] ?? '');
      assert.ok(vote && isValid, `a vote for ${about} is valid`);
      return vote.voter;
    });
    assert.equal(new Set(people).size, people.length);
    const places = (this.#current().approvals?.all ?? []).flatMap((entry) =>
      Array.from({ length: entry.count ?? 1 }, () => entry),
    );
    assert.equal(people.length, places.length);
    assert.ok(canFill(places, people), `${people} fill ${JSON.stringify(places)}`);
  }

  #assertNotDenied(about: string): void {
    for (const [uid, vote] of this.#votes) {
      assert.ok(vote.about !== about || !vote.denies || !this.#isValid(uid), `no valid denial of ${about}`);
    }
  }

  #isValid(uid: string): boolean {
    const vote = this.#votes.get(uid);
    if (!vote || vote.voter === 'alice' || !this.#approvers.has(vote.voter)) return false;
    return vote.denies || vote.generation === this.#current().generation;
  }

  #current(): Version {
    const version = this.#versions.at(-1);
    assert.ok(version);
    return version;
  }

  #openings(): number {
    return this.stage.cluster.calls.filter(({ verb, plural }) => verb === 'create' && plural === 'rolebindings').length;
  }

  #isOpen(): boolean {
    return this.stage.cluster.names(roleBindings).length > 0;
  }
}

/** Whether each place has one person who fits: by trying all orders, unlike the server. */
function canFill([place, ...others]: readonly ApprovalEntry[], people: readonly Voter[]): boolean {
  if (!place) return true;
  return people.some(
    (person) =>
      (!place.groups || groupsOf(person).some((group) => place.groups?.includes(group))) &&
      canFill(
        others,
        people.filter((other) => other !== person),
      ),
  );
}

describe('access that others approve, in random histories', function () {
  this.timeout(900_000);

  it('is open only by votes that were valid when they were counted, and never longer', async () => {
    const histories = runs(2000, 20);
    const seen = { opened: 0, extended: 0, refused: 0, kept: 0 };
    await fc.assert(
      fc.asyncProperty(beginning, fc.array(step, { minLength: 3, maxLength: 14 }), async (first, steps) => {
        const history = new History(first.asked);
        await history.start();
        for (const one of [...first.steps, ...steps]) await history.run(one);
        await history.finish();
        if (history.opened) seen.opened++;
        if (history.extended) seen.extended++;
        if (history.refused) seen.refused++;
        if (history.kept) seen.kept++;
      }),
      { seed: 20261122, numRuns: histories },
    );
    assert.ok(
      seen.opened > histories / 10 && seen.extended > 0 && seen.refused > 0 && seen.kept > 0,
      JSON.stringify(seen),
    );
  });
});

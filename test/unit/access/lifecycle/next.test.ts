import assert from 'node:assert/strict';
import type { Planned } from '../../../../src/access/builders/plan.ts';
import type { Facts } from '../../../../src/access/lifecycle/facts.ts';
import { next } from '../../../../src/access/lifecycle/next.ts';
import { latestEndMs } from '../../../../src/access/lifecycle/request-ends.ts';
import type { JudgedVote } from '../../../../src/access/lifecycle/votes.ts';
import type { RequestView, TemplateView } from '../../../../src/access/stores/access-views.ts';
import type { RequestSpec } from '../../../../src/api/access/kinds.ts';
import type { AccessConfig } from '../../../../src/api/access/template-spec.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { accessConfig, approvals, grantOf } from '../../../support/access-objects.ts';
import { condition, createdAtMs, requestView } from '../../../support/request-views.ts';

const minute = 60_000;
const nowMs = createdAtMs + minute;
const requester = { username: 'alice', uid: '', groups: ['devs'], time: '' };

const templateWith = (config: Partial<AccessConfig> = {}, over: Partial<TemplateView> = {}): TemplateView =>
  ({
    uid: 't-1',
    name: 'payments-shell',
    generation: 3,
    conditions: [{ type: 'TargetRefExists', status: 'True', observedGeneration: over.generation ?? 3 }],
    ready: true,
    spec: { accessConfig: { ...accessConfig, ...config } },
    ...over,
  }) as unknown as TemplateView;
const edited = (config: Partial<AccessConfig>, over: Partial<TemplateView> = {}): TemplateView =>
  templateWith(config, { generation: 4, ...over });

const facts = (over: Partial<Facts> = {}): Facts => ({
  kind: { requestKind: 'PodAccessRequest', templateKind: 'PodAccessTemplate' },
  grantable: [],
  template: templateWith(),
  endClockMs: nowMs,
  cause: undefined,
  isRemoved: false,
  owed: undefined,
  overdue: undefined,
  proof: 'certified',
  mayBeDenied: false,
  isLimited: false,
  access: undefined,
  ...over,
});
const asked = (over: Partial<RequestView> = {}, spec: Partial<RequestSpec> = {}): RequestView =>
  requestView({ spec: { templateName: 'payments-shell', duration: '30m', requester, ...spec }, ...over });
const granted = (over: Partial<RequestView> = {}, subjects: readonly object[] = [{ kind: 'User', name: 'alice' }]) =>
  asked({ grant: { ...grantOf({ subjects }), expiresAt: '2026-11-21T09:30:00Z' } as never, ...over });
const ended = (over: Partial<RequestView> = {}) =>
  asked({
    ended: { at: formatTime(nowMs), how: 'Revoked', reason: 'Revoked', keptUntil: formatTime(nowMs + minute) },
    ...over,
  });

/** Such as `end Expired`, `deny TooLate`, or `look votes`. */
function told(request: RequestView, known: Partial<Facts> = {}): string {
  const step = next(request, facts(known), nowMs);
  switch (step.do) {
    case 'end':
      return `end ${step.cause.ending}`;
    case 'deny':
      return `deny ${step.violation.code}`;
    case 'look':
      return `look ${step.at}`;
    case 'wait':
      return `wait ${step.condition.reason} until ${formatTime(step.untilMs)}`;
    case 'remove':
      return step.now ? 'remove now' : 'remove';
    default:
      return step.do;
  }
}

const groups = [
  { kind: 'Group', name: 'devs' },
  { kind: 'Group', name: 'sre' },
];
const toGroups: Partial<AccessConfig> = { grantTo: 'AllowedGroups' };
const fine = { lost: null, held: true, denial: null, author: null, votes: [] } as const;
const invalid = { code: 'InvalidTargetPod', message: '', status: 422 } as const;
const peer = { approvals };
const planned = { plan: {} } as unknown as Planned;
const emergency: RequestSpec = { templateName: 'payments-shell', duration: '30m', requester, emergency: true };
const vote = { uid: 'v-1', createdAtMs, spec: { decision: 'Deny', voter: { username: 'carol' } } };
const denial = { vote, violation: undefined } as unknown as JudgedVote;
const children = [{ kind: 'RoleBinding', name: 'debug-1a2b3c4d-access', uid: 'b-1' }] as const;
const extending = () =>
  granted({ children, spec: { templateName: 'payments-shell', requester, extensions: [{ by: '5m' }] } });
const extendable: Partial<Facts> = {
  ...fine,
  opened: { recheckMs: undefined },
  template: templateWith({ extension: { times: 2, total: '2h', approvals: 'None' } }),
  access: {
    startMs: createdAtMs,
    endMs: createdAtMs + 30 * minute,
    decided: 0,
    granted: 0,
    emergency: false,
    podEndMs: undefined,
  },
};

const cases: [what: string, expected: string, request: RequestView, known?: Partial<Facts>][] = [
  ['denied by Oz, without an end', 'rest', asked({ conditions: [condition('TargetTemplateExists', 'False')] })],
  [
    'granted, and denied while it opened, without an end',
    'rest',
    granted({ conditions: [condition('AccessResourcesCreated', 'False')] }),
    fine,
  ],
  ['not ready yet', 'look author', asked({ conditions: [condition('AccessResourcesReady', 'False')] })],
  ['an end that began', 'end Shortened', granted(), { cause: { ending: 'Shortened' } }],
  ['the deadline by the monotonic clock', 'end Expired', granted(), { endClockMs: createdAtMs + 30 * minute }],
  ['a wait that was never decided', 'end Expired', asked(), { endClockMs: createdAtMs + 60 * minute }],
  ['a revocation', 'end Revoked', granted({ revoked: true, deleting: true })],
  ['a deletion', 'end Deleted', asked({ deleting: true })],
  ['a grant', 'look lost', granted()],
  ['a lost pod', 'end TargetPodGone', granted(), { lost: { ending: 'TargetPodGone' } }],
  ['a grant that is not lost', 'look denial', granted(), { lost: null }],
  ['a grant that no one denies', 'open', granted(), fine],
  ['open access', 'rest', granted(), { ...fine, opened: { recheckMs: undefined } }],

  ['a shorter maximum', 'end Shortened', granted(), { template: edited({ maxDuration: '1m' }) }],
  [
    'an edit that removes the group',
    'look held',
    granted(),
    { lost: null, template: edited({ allowedGroups: ['qa'] }) },
  ],
  [
    'lost permissions',
    'end NoLongerAllowed',
    granted(),
    { ...fine, held: false, template: edited({ allowedGroups: [] }) },
  ],
  ['held permissions', 'open', granted(), { ...fine, template: edited({ allowedGroups: ['qa'] }) }],
  [
    'one more group',
    'open',
    granted({}, groups),
    { ...fine, template: edited({ ...toGroups, allowedGroups: ['devs', 'sre', 'qa'] }) },
  ],
  [
    'one group less',
    'end NoLongerAllowed',
    granted({}, groups),
    { ...fine, template: edited({ ...toGroups, allowedGroups: ['devs'] }) },
  ],
  [
    'no group any more',
    'end NoLongerAllowed',
    granted({}, groups),
    { ...fine, template: edited({ allowedGroups: ['devs', 'sre'] }) },
  ],
  [
    'an emergency whose group stays',
    'look reviewVotes',
    granted({ spec: emergency }),
    { ...fine, template: edited({ emergency: { groups: ['devs', 'qa'], maxDuration: '1h', reviewWithin: '1h' } }) },
  ],
  [
    'an emergency whose group is gone, with permissions',
    'end NoLongerAllowed',
    granted({ spec: emergency }),
    { ...fine, template: edited({ emergency: { groups: ['qa'], maxDuration: '1h', reviewWithin: '1h' } }) },
  ],
  ['no edit', 'open', granted(), { ...fine, template: templateWith({ allowedGroups: [], maxDuration: '1m' }) }],
  ['a store that lags', 'open', granted(), { ...fine, template: edited({ allowedGroups: [] }, { generation: 2 }) }],
  ['another template', 'open', granted(), { ...fine, template: edited({ allowedGroups: [] }, { uid: 't-2' }) }],

  ['an extension', 'extend', extending(), extendable],
  ['an extension in a gap', 'retry', extending(), { ...extendable, proof: 'gap' }],
  ['open access in a gap', 'rest', granted({ children }), { ...extendable, proof: 'gap' }],

  ['an end', 'look surplus', ended()],
  ['an end within the maximum', 'keep', ended(), { surplus: [] }],
  ['an end beyond the maximum', 'remove', ended(), { surplus: [ended()] }],
  ['an end whose time passed', 'remove', ended(), { endClockMs: nowMs + minute }],
  ['an end that a user deleted', 'remove now', ended({ deleting: true })],

  ['no requester', 'deny MissingIdentity', requestView()],
  ['no template in the store', 'look absence', asked(), { template: undefined }],
  ['a template that the store lacks', 'rest', asked(), { template: undefined, absence: null }],
  [
    'a new version of the template',
    'rest',
    asked(),
    { template: templateWith({}, { generation: 5, conditions: templateWith().conditions }) },
  ],
  ['no certificate', 'deny PoliciesMissing', asked(), { proof: 'uncertified' }],
  ['a gap of the policies', 'await', asked(), { proof: 'gap' }],
  [
    'a gap, and a vote that may deny',
    'look votes',
    asked(),
    { proof: 'gap', mayBeDenied: true, author: null, template: templateWith(peer) },
  ],
  [
    'a denial in a gap',
    'deny VoteDenied',
    asked(),
    { ...fine, proof: 'gap', mayBeDenied: true, votes: [denial], template: templateWith(peer) },
  ],
  ['another group', 'look held', asked(), { template: templateWith({ allowedGroups: ['qa'] }) }],
  ['no permissions', 'deny NotEligible', asked(), { held: false, template: templateWith({ allowedGroups: ['qa'] }) }],
  ['an eligible requester', 'look author', asked()],
  [
    'an unready author',
    'deny AuthorLacksRights',
    asked(),
    { author: { code: 'AuthorLacksRights', message: '', status: 403 } },
  ],
  ['an invalid duration', 'deny InvalidDuration', asked({}, { duration: 'soon' }), { author: null }],
  ['a missing vote', 'look votes', asked(), { author: null, template: templateWith(peer) }],
  ['no vote', 'wait Pending until 2026-11-21T10:00:00Z', asked(), { ...fine, template: templateWith(peer) }],
  [
    'an approved start',
    'wait Scheduled until 2026-11-21T09:05:00Z',
    asked({}, { startAt: '2026-11-21T09:05:00Z' }),
    { ...fine, template: templateWith({ start: { maxAhead: '1h' } }) },
  ],
  [
    'a plan that came too late',
    'deny TooLate',
    asked(),
    { ...fine, plan: { planned, doneMs: createdAtMs + 30 * minute } },
  ],
  ['all that it needs', 'look plan', asked(), fine],
  [
    'a plan that fails',
    'deny InvalidTargetPod',
    asked(),
    { ...fine, plan: { planned: { violation: invalid }, doneMs: nowMs } },
  ],
];

describe('what the server does next', () => {
  for (const [what, expected, request, known] of cases)
    it(`with ${what}: ${expected}`, () => assert.equal(told(request, known), expected));

  it('is the same for the same facts', () => {
    for (const [, , request, known] of cases) {
      const before = structuredClone(request);
      assert.deepEqual(next(request, facts(known), nowMs), next(request, facts(known), nowMs));
      assert.deepEqual(request, before);
    }
  });
});

describe('the latest end by an edit of the template', () => {
  const ends: [string, number, TemplateView | undefined][] = [
    ['counts the shorter maximum from the creation', createdAtMs + 5 * minute, edited({ maxDuration: '5m' })],
    ['is none if the maximum is invalid', Number.POSITIVE_INFINITY, edited({ maxDuration: 'soon' })],
    ['is none without an edit', Number.POSITIVE_INFINITY, templateWith({ maxDuration: '5m' })],
    ['is none without the template', Number.POSITIVE_INFINITY, undefined],
  ];
  for (const [what, expected, template] of ends)
    it(what, () => assert.equal(latestEndMs(granted(), template), expected));
});

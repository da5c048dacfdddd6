import assert from 'node:assert/strict';
import { isSummary } from '../../../../src/access/conditions.ts';
import { isUnchanged, type OpenShown, type Shown, statusOf } from '../../../../src/access/lifecycle/status.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import type { Ended } from '../../../../src/api/access/ended.ts';
import { type Ending, outcomeOf } from '../../../../src/api/access/ending.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import type { RequestState } from '../../../../src/api/access/status.ts';
import type { Code } from '../../../../src/api/codes.ts';
import type { Condition } from '../../../../src/api/object.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { condition, createdAtMs, podView, requestView } from '../../../support/request-views.ts';

const minute = 60_000;
const atMs = createdAtMs + minute;
const endMs = createdAtMs + 30 * minute;
const grant = grantOf() as unknown as Grant;
const name = 'debug-1a2b3c4d-access';
const granted: Shown = {
  is: 'granted',
  grant,
  duration: '30m as asked',
  limits: ['cpu lowered'],
  reasonLink: undefined,
  approved: undefined,
};
const opened = (over: Partial<OpenShown> = {}): OpenShown => ({
  is: 'open',
  children: [
    { kind: 'Pod', name, uid: 'p-1' },
    { kind: 'RoleBinding', name, uid: 'b-1' },
  ],
  endMs,
  grantedEndMs: endMs,
  pod: podView(),
  accessMessage: { text: 'kubectl exec …' },
  ...over,
});
const endAt = (how: Ended['how'], reason = 'Because'): Ended => ({
  at: formatTime(atMs),
  how,
  reason,
  keptUntil: formatTime(atMs),
});
const endedBy = (ending: Ending, how: Ended['how'] = outcomeOf(ending)): Shown => ({
  is: 'ended',
  cause: { ending },
  ended: endAt(how, ending),
  approval: undefined,
  extensions: undefined,
});
const deniedBy = (code: Code): Shown => ({
  is: 'denied',
  violation: { code, message: 'why', status: 403 },
  ended: endAt('Denied', code),
});
/** As the API server stores what was shown. */
function stored(before: RequestView, ...shown: readonly Shown[]): RequestView {
  let request = before;
  for (const one of shown) {
    const { approval, ...status } = statusOf(request, one, atMs);
    request = { ...request, ...status, approval: approval === undefined ? request.approval : approval } as RequestView;
  }
  return request;
}
const is = (request: RequestView, type: string): string => {
  const { status, reason, message } = request.conditions.find((one) => one.type === type) ?? {};
  return `${status} ${reason}: ${message}`;
};
const shown = ({ conditions }: RequestView, isShown: (one: Condition) => boolean): string[] =>
  conditions.filter(isShown).map(({ type, status, reason }) => `${type}=${status} ${reason}`);

const fresh = requestView();
const waiting = requestView({
  approval: { state: 'Pending', due: '2026-11-21T10:00:00Z' },
  conditions: [{ ...condition('AccessApproved', 'False'), status: 'Unknown', reason: 'Pending' }],
});
const open = stored(fresh, granted, opened());
const unready = podView({ ready: false, notReadyReason: 'container app: ImagePullBackOff' });
const violation = { code: 'InvalidAccessCommand', message: 'no such label', status: 422 } as const;

/** The state, `Ready`, and the message of `Ready`. */
const cases: [string, RequestView, RequestState, string, (string | RegExp)?][] = [
  ['waits for votes', stored(waiting, { is: 'unproven' }), 'Waiting', 'PoliciesMissing'],
  ['is granted', stored(fresh, granted), 'Waiting', 'Progressing'],
  ['is open', open, 'Open', 'Open', 'access is open'],
  ['has no pod yet', stored(open, opened({ pod: undefined })), 'Open', 'NotYetReady', /not reported the Pod yet$/],
  ['has a pod that waits', stored(open, opened({ pod: unready })), 'Open', 'NotYetReady', unready.notReadyReason],
  ['has no command', stored(open, opened({ accessMessage: { violation } })), 'Open', 'InvalidAccessCommand'],
  ['cannot be closed', stored(open, { is: 'unclosed', message: 'no' }), 'Open', 'ResourceRefused', 'no'],
  ['expired', stored(open, endedBy('Expired', 'Expired')), 'Expired', 'Expired'],
  ['was shortened', stored(open, endedBy('Shortened', 'Expired')), 'Expired', 'Expired'],
  ['was deleted', stored(open, endedBy('Deleted')), 'Revoked', 'Revoked'],
  ['was denied by a late vote', stored(open, endedBy('VoteDenied')), 'Revoked', 'Revoked', /^access ended at 2026/],
  ['lost its template', stored(open, endedBy('TemplateDeleted')), 'Revoked', 'Revoked', /^access ended at 2026/],
  ['is not allowed any more', stored(open, endedBy('NoLongerAllowed')), 'Revoked', 'Revoked', /^access ended at 2026/],
  ['lost its pod', stored(open, endedBy('TargetPodGone')), 'Revoked', 'Revoked', /create a new request$/],
  ['was withdrawn', stored(waiting, endedBy('Revoked')), 'Withdrawn', 'Revoked', /^the request ended at 2026/],
  ['was never decided', stored(waiting, endedBy('Expired', 'Expired')), 'Expired', 'Expired', /not decided in time/],
  ['is denied', stored(waiting, deniedBy('NotEligible')), 'Denied', 'Denied', 'NotEligible: why'],
  ['is denied while it opens', stored(open, deniedBy('PlanChanged')), 'Denied', 'Denied', 'PlanChanged: why'],
];

describe('the status of a request', () => {
  for (const [what, request, state, reason, message = /./] of cases) {
    it(`is ${state}, with Ready ${reason}, if it ${what}`, () => {
      const ready = request.conditions.find(({ type }) => type === 'Ready');
      assert.deepEqual([request.state, ready?.reason, request.ready], [state, reason, reason === 'Open']);
      assert.match(ready?.message ?? '', message instanceof RegExp ? message : new RegExp(`^${message}$`));
      const isFinal = request.ended || ['ResourceRefused', 'InvalidAccessCommand'].includes(reason);
      const summaries = reason === 'Open' ? [] : [`${isFinal ? 'Stalled' : 'Reconciling'}=True ${reason}`];
      const expected = [`Ready=${reason === 'Open' ? 'True' : 'False'} ${reason}`, ...summaries];
      assert.deepEqual(shown(request, isSummary).sort(), expected.sort());
    });
  }

  it('records the grant and its decision', () => {
    const request = stored(fresh, granted);
    assert.deepEqual([request.grant, request.expiresAt], [grant, grant.expiresAt]);
    assert.equal(is(request, 'TargetTemplateExists'), 'True Success: PodAccessTemplate payments-shell, generation 3');
    assert.equal(is(request, 'PodLimited'), 'True LimitedByTemplate: cpu lowered');
    assert.equal(is(request, 'AccessDurationsValid'), 'True Success: 30m as asked');
    assert.equal(is(request, 'AccessStillValid'), 'True Success: until 2026-11-21T09:30:00Z');
  });

  it('tells how to use open access, and no longer once it ended', () => {
    const { accessMessage, children } = statusOf(open, opened(), atMs);
    assert.deepEqual([accessMessage, children?.length], ['kubectl exec …', 2]);
    const ended = statusOf(open, endedBy('Expired', 'Expired'), atMs);
    assert.deepEqual([ended.accessMessage, ended.children, ended.expiresAt], [null, [], '2026-11-21T09:01:00Z']);
    assert.deepEqual(shown(stored(open, endedBy('Expired', 'Expired')), (one) => !isSummary(one)).slice(3), [
      'AccessStillValid=False Expired',
      'AccessResourcesCreated=True AccessEnded',
      'AccessResourcesReady=False AccessEnded',
      'AccessMessage=False AccessEnded',
    ]);
  });

  it('shows no deadline of access that was denied while it opened', () => {
    const request = stored(open, deniedBy('PlanChanged'));
    assert.equal(is(request, 'AccessStillValid'), 'False Denied: access was denied while it opened');
    assert.equal(request.expiresAt, '2026-11-21T09:01:00Z');
  });

  for (const end of [endedBy('Revoked'), deniedBy('NotEligible')]) {
    it(`waits no longer once it is ${end.is}`, () => {
      const request = stored(waiting, end);
      assert.equal(request.approval, null);
      assert.match(is(request, 'AccessApproved'), /^False (Revoked|NotEligible)/);
      assert.equal(statusOf(waiting, end, atMs).expiresAt, undefined);
    });
  }

  const refusals: [Code, string][] = [
    ['TemplateNotFound', 'TargetTemplateExists=False NotFound'],
    ['TemplateNotReady', 'TargetTemplateExists=False TemplateNotReady'],
    ['InvalidDuration', 'AccessDurationsValid=False NotAcceptable'],
    ['TooLate', 'AccessStillValid=False Timeout'],
    ['VoteDenied', 'AccessApproved=False Denied'],
    ['NotEligible', 'AccessResourcesCreated=False NotEligible'],
    ['NameCollision', 'AccessResourcesCreated=False NameCollision'],
  ];
  for (const [code, expected] of refusals) {
    it(`reports the permanent ${code} as ${expected}`, () => {
      const request = stored(fresh, deniedBy(code));
      assert.deepEqual(
        shown(request, (one) => !isSummary(one)),
        [expected],
      );
      assert.match(is(request, 'Ready'), new RegExp(`: ${code}: why$`));
    });
  }

  const wasShort = [condition('AccessShortened', 'True')];
  const durations: [string, string | undefined, string, Partial<OpenShown>?, Condition[]?][] = [
    ['lasts as asked', '30m', 'undefined undefined: undefined'],
    ['was asked for without a duration', undefined, 'undefined undefined: undefined'],
    ['was asked for with an invalid duration', 'a while', 'undefined undefined: undefined'],
    ['is longer than asked', '10m', 'undefined undefined: undefined'],
    ['is shorter than asked', '30m1s', 'True LessThanAsked: asked for 30 min 1 s, granted 30 min'],
    [
      'is shortened by an edit',
      '5h',
      'True TemplateChanged: until 2026-11-21T09:20:00Z instead of 2026-11-21T09:30:00Z, because an edit of the template shortened it',
      { endMs: endMs - 10 * minute },
    ],
    ['is restored by an edit', '30m', 'False AsGranted: until 2026-11-21T09:30:00Z', {}, wasShort],
    [
      'is extended to what was asked',
      '40m',
      'False AsGranted: until 2026-11-21T09:40:00Z',
      { endMs: endMs + 10 * minute, grantedEndMs: endMs + 10 * minute },
      wasShort,
    ],
  ];
  for (const [what, duration, expected, over, conditions = []] of durations) {
    it(`has the AccessShortened of access that ${what}`, () => {
      const spec = { templateName: 'shell', ...(duration === undefined ? {} : { duration }) };
      assert.equal(is(stored(requestView({ spec, grant, conditions }), opened(over)), 'AccessShortened'), expected);
    });
  }

  const writes: [string, RequestView, Partial<OpenShown>, boolean][] = [
    ['not if it equals the stored status', open, {}, false],
    [
      'not if another condition differs',
      { ...open, conditions: [condition('X', 'False'), ...open.conditions] },
      {},
      false,
    ],
    ['if the pod is not ready any more', open, { pod: unready }, true],
    ['if the message changed', open, { accessMessage: { text: 'another' } }, true],
    ['if the children are not in it', { ...open, children: [] }, {}, true],
    ['if `ready` was meddled with', { ...open, ready: false }, {}, true],
    ['if `state` was meddled with', { ...open, state: 'Denied' }, {}, true],
    ['if a condition was removed', { ...open, conditions: open.conditions.slice(0, -1) }, {}, true],
  ];
  for (const [what, request, over, isWritten] of writes) {
    it(`is written ${what}`, () => {
      assert.equal(isUnchanged(request, statusOf(request, opened(over), atMs + 10 * minute)), !isWritten);
    });
  }

  it('is not written for a state that the API server drops', () => {
    const dropped = { ...stored(open, opened()), state: undefined };
    assert.equal(isUnchanged(dropped, statusOf(dropped, opened(), atMs)), true);
  });

  it('is written for each grant and each end', () => {
    for (const one of [granted, endedBy('Revoked'), deniedBy('TooLate')])
      assert.equal(isUnchanged(stored(open, one), statusOf(stored(open, one), one, atMs)), false);
  });
});

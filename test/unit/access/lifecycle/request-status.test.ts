import assert from 'node:assert/strict';
import { isSummary } from '../../../../src/access/conditions.ts';
import { deniedStatus, endedStatus } from '../../../../src/access/lifecycle/ended-status.ts';
import { isDeniedOrEnded } from '../../../../src/access/lifecycle/request-conditions.ts';
import {
  grantedStatus,
  isUnchanged,
  type Progress,
  progressStatus,
  type RequestStatusPatch,
} from '../../../../src/access/lifecycle/request-status.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import type { Ended } from '../../../../src/api/access/ended.ts';
import type { Ending } from '../../../../src/api/access/ending.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import type { Code } from '../../../../src/api/codes.ts';
import type { Condition } from '../../../../src/api/object.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { condition, createdAtMs, podView, requestView } from '../../../support/request-views.ts';

const grant = grantOf() as unknown as Grant;
const summary = { duration: '30m as asked', limits: [] };
const children: Progress['children'] = [
  { kind: 'Pod', name: 'debug-1a2b3c4d-access', uid: 'p-1' },
  { kind: 'RoleBinding', name: 'debug-1a2b3c4d-access', uid: 'b-1' },
];
const endAt = (atMs: number, how: Ended['how']): Ended => ({
  at: formatTime(atMs),
  how,
  reason: 'Because',
  keptUntil: formatTime(atMs),
});
const denied = endAt(createdAtMs, 'Denied');
const progress = (over: Partial<Progress> = {}): Progress => ({
  children,
  until: 'until 2026-11-21T09:30:00Z',
  expiresAt: '2026-11-21T09:30:00Z',
  shortened: undefined,
  pod: podView(),
  accessMessage: { text: 'kubectl exec …' },
  ...over,
});
const written = (request: RequestView, status: RequestStatusPatch): RequestView => ({
  ...request,
  ...(status.grant ? { grant: status.grant } : {}),
  expiresAt: status.expiresAt ?? request.expiresAt,
  conditions: status.conditions,
  ready: status.ready,
  children: status.children ?? request.children,
});
const describeCondition = ({ type, status, reason }: Condition): string => `${type}=${status} ${reason}`;
const details = (status: RequestStatusPatch): string[] =>
  status.conditions.filter((one) => !isSummary(one)).map(describeCondition);
const summed = (status: RequestStatusPatch): string[] => status.conditions.filter(isSummary).map(describeCondition);

describe('the status of a request', () => {
  const granted = written(requestView(), grantedStatus(requestView(), grant, summary, createdAtMs));

  it('records the grant and its decision, and is not ready', () => {
    const status = grantedStatus(
      requestView(),
      grant,
      { duration: '4h, the most allowed', limits: ['cpu lowered'] },
      createdAtMs,
    );
    assert.equal(status.grant, grant);
    assert.equal(status.podName, 'debug-1a2b3c4d-access');
    assert.equal(status.ready, false);
    assert.deepEqual(
      status.conditions.slice(0, 4).map(({ type, message }) => [type, message]),
      [
        ['TargetTemplateExists', 'PodAccessTemplate payments-shell, generation 3'],
        ['PodLimited', 'cpu lowered'],
        ['AccessDurationsValid', '4h, the most allowed'],
        ['AccessStillValid', 'until 2026-11-21T09:30:00Z'],
      ],
    );
    assert.deepEqual(summed(status), ['Ready=False Progressing', 'Reconciling=True Progressing']);
  });

  it('is ready, with the access message, once the pod is ready', () => {
    const status = progressStatus(granted, progress(), createdAtMs);
    assert.equal(status.ready, true);
    assert.equal(status.accessMessage, 'kubectl exec …');
    assert.deepEqual(status.children, children);
    assert.deepEqual(summed(status), ['Ready=True Open']);
    assert.deepEqual(details(status).slice(3), [
      'AccessResourcesCreated=True Success',
      'AccessResourcesReady=True Success',
      'AccessMessage=True Success',
    ]);
  });

  const notReady: { what: string; pod: Progress['pod']; message: string }[] = [
    { what: 'has not been seen', pod: undefined, message: 'the API server has not reported the Pod yet' },
    {
      what: 'waits',
      pod: podView({ ready: false, notReadyReason: 'container app: ImagePullBackOff' }),
      message: 'container app: ImagePullBackOff',
    },
  ];
  for (const { what, pod, message } of notReady) {
    it(`has the reason why it is not ready if the pod ${what}`, () => {
      const status = progressStatus(granted, progress({ pod }), createdAtMs);
      assert.equal(status.ready, false);
      assert.equal('accessMessage' in status, false);
      const condition = status.conditions.find(({ type }) => type === 'AccessResourcesReady');
      assert.deepEqual([condition?.status, condition?.reason, condition?.message], ['False', 'NotYetReady', message]);
      assert.equal(isDeniedOrEnded(written(granted, status)), false);
      assert.deepEqual(summed(status), ['Ready=False NotYetReady', 'Reconciling=True NotYetReady']);
    });
  }

  it('is neither ready nor denied if the access message cannot be rendered', () => {
    const violation = { code: 'InvalidAccessCommand', message: 'no such label', status: 422 } as const;
    const status = progressStatus(granted, progress({ accessMessage: { violation } }), createdAtMs);
    assert.equal(status.ready, false);
    assert.equal(details(status).at(-1), 'AccessMessage=False InvalidAccessCommand');
    assert.deepEqual(summed(status), ['Ready=False InvalidAccessCommand', 'Stalled=True InvalidAccessCommand']);
    assert.equal(isDeniedOrEnded(written(granted, status)), false);
  });

  it('follows the readiness of the pod', () => {
    const lost = written(open, progressStatus(open, progress({ pod: podView({ ready: false }) }), createdAtMs));
    assert.equal(lost.ready, false);
    assert.deepEqual(summed(progressStatus(lost, progress(), createdAtMs)), ['Ready=True Open']);
  });

  const open = written(granted, progressStatus(granted, progress(), createdAtMs));
  const planChanged = { code: 'PlanChanged', message: 'why', status: 422 } as const;

  describe('of access that ended', () => {
    const atMs = createdAtMs + 60_000;
    const outcomes: [Ending, Ended['how']][] = [
      ['Expired', 'Expired'],
      ['Shortened', 'Expired'],
      ['Revoked', 'Revoked'],
      ['Deleted', 'Revoked'],
      ['VoteDenied', 'Revoked'],
      ['TemplateDeleted', 'Revoked'],
      ['NoLongerAllowed', 'Revoked'],
      ['TargetPodGone', 'Revoked'],
    ];
    for (const [ending, outcome] of outcomes) {
      it(`is Ready=False ${outcome} if the ending is ${ending}, with the time and the reason`, () => {
        const status = endedStatus(open, { ending, text: 'why', ended: endAt(atMs, outcome) }, atMs + 200);
        assert.equal(status.ready, false);
        assert.equal(status.expiresAt, '2026-11-21T09:01:00Z');
        assert.deepEqual(summed(status), [`Ready=False ${outcome}`, `Stalled=True ${outcome}`]);
        const ready = status.conditions.find(({ type }) => type === 'Ready');
        assert.equal(ready?.message, 'access ended at 2026-11-21T09:01:00Z: why');
        assert.ok(isDeniedOrEnded(written(open, status)));
      });
    }

    it('tells no longer how to use it', () => {
      const status = endedStatus(open, { ending: 'Expired', text: 'why', ended: endAt(atMs, 'Expired') }, atMs);
      assert.deepEqual([status.accessMessage, status.children], [null, []]);
      assert.deepEqual(details(status).slice(2), [
        'AccessStillValid=False Expired',
        'AccessResourcesCreated=True AccessEnded',
        'AccessResourcesReady=False AccessEnded',
        'AccessMessage=False AccessEnded',
      ]);
      const created = status.conditions.find(({ type }) => type === 'AccessResourcesCreated');
      assert.equal(created?.message, 'the objects of the grant were created, and deleted when access ended');
    });
  });

  it('shows the end of access that was denied while it opened', () => {
    assert.equal(deniedStatus(open, planChanged, denied, createdAtMs + 1000).expiresAt, '2026-11-21T09:00:01Z');
    assert.equal(deniedStatus(requestView(), planChanged, denied, createdAtMs).expiresAt, undefined);
  });

  it('names no deadline once access was denied while it opened', () => {
    const status = deniedStatus(open, planChanged, denied, createdAtMs + 1000);
    assert.ok(details(status).includes('AccessStillValid=False Denied'), details(status).join(', '));
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    assert.deepEqual([ready?.reason, ready?.message], ['Denied', 'PlanChanged: why']);
  });

  describe('of a request that waits for approvals', () => {
    const waiting = requestView({
      approval: { state: 'Pending', due: '2026-11-21T10:00:00Z' },
      conditions: [{ ...condition('AccessApproved', 'False'), status: 'Unknown', reason: 'Pending' }],
    });

    it('waits no longer once it is withdrawn', () => {
      const status = endedStatus(
        waiting,
        { ending: 'Revoked', text: 'why', ended: endAt(createdAtMs, 'Revoked') },
        createdAtMs,
      );
      assert.equal(status.approval, null);
      assert.equal('expiresAt' in status, false);
      assert.deepEqual(details(status), ['AccessApproved=False Revoked', 'AccessStillValid=False Revoked']);
      const ready = status.conditions.find(({ type }) => type === 'Ready');
      assert.deepEqual([ready?.reason, ready?.message], ['Revoked', 'the request ended at 2026-11-21T09:00:00Z: why']);
    });

    it('waits no longer once it is denied for another reason', () => {
      const status = deniedStatus(waiting, { code: 'NotEligible', message: 'why', status: 403 }, denied, createdAtMs);
      assert.equal(status.approval, null);
      assert.deepEqual(details(status), [
        'AccessApproved=False NotEligible',
        'AccessResourcesCreated=False NotEligible',
      ]);
      assert.equal(status.conditions.find(({ type }) => type === 'Ready')?.message, 'NotEligible: why');
    });
  });

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
      const status = deniedStatus(requestView(), { code, message: 'why', status: 403 }, denied, createdAtMs);
      assert.deepEqual(details(status), [expected]);
      assert.deepEqual(summed(status), ['Ready=False Denied', 'Stalled=True Denied']);
      assert.equal(status.conditions.find(({ type }) => type === 'Ready')?.message, `${code}: why`);
      assert.equal(status.ready, false);
      assert.equal(isDeniedOrEnded(written(requestView(), status)), true);
    });
  }

  describe('is written', () => {
    const later = createdAtMs + 600_000;

    it('not if it equals the stored status', () => {
      assert.equal(isUnchanged(open, progressStatus(open, progress(), later)), true);
    });

    it('not if only a foreign condition differs', () => {
      const others = { ...open, conditions: [condition('Theirs', 'False'), ...open.conditions] };
      assert.equal(isUnchanged(others, progressStatus(others, progress(), later)), true);
    });

    const changes: [string, RequestView, Partial<Progress>][] = [
      ['the pod is not ready any more', open, { pod: podView({ ready: false }) }],
      ['the message changed', open, { accessMessage: { text: 'another' } }],
      ['the children are not in it', { ...open, children: [] }, {}],
      ['`ready` was meddled with', { ...open, ready: false }, {}],
      ['a condition was removed', { ...open, conditions: open.conditions.slice(0, -1) }, {}],
    ];
    for (const [what, request, over] of changes) {
      it(`if ${what}`, () => {
        assert.equal(isUnchanged(request, progressStatus(request, progress(over), later)), false);
      });
    }
  });
});

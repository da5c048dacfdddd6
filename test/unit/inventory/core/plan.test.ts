import assert from 'node:assert/strict';
import type { Outcome } from '../../../../src/api/inventory/contract/outcome.ts';
import { extension, startedRecord } from '../../../../src/inventory/core/endings.ts';
import type { Answer, Memory } from '../../../../src/inventory/core/memory.ts';
import { isOutdated, plan } from '../../../../src/inventory/core/plan.ts';
import type { RunRecord } from '../../../../src/inventory/core/run-record.ts';
import { statusOf } from '../../../../src/inventory/core/status.ts';
import { isLivelock, withStart } from '../../../../src/inventory/core/timing.ts';
import { mergeTriggers, reasonText, triggerReasons, withTriggers } from '../../../../src/inventory/core/triggers.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import { runObject } from '../../../../src/inventory/stores/run-object.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';
import * as stage from '../../../support/inventory/plan-facts.ts';
import { factsOf, type Given, hour, minute, now, nowMs, stepText } from '../../../support/inventory/plan-facts.ts';
import { chooseSeed, seededRandom } from '../../../support/random.ts';
import { runs } from '../../../support/runs.ts';

type Row = readonly [what: string, given: Given, step: string];

const endpoint = '/status/outputs/cluster/endpoint';
const notReady = { outcome: 'NotReady', missing: [{ path: endpoint, want: 'present' }] } as const;
const hasOutputs = (outputs: Readonly<Record<string, unknown>>) => ({ content: { spec: {}, status: { outputs } } });
const withEndpoint: Partial<Entry> = hasOutputs({ cluster: { endpoint: 'e' } });
const { entry: without } = factsOf();
const teardown: Given = { may: 'delete', record: { operation: 'delete' } };
const draining: Given = { may: 'delete', record: { credentialId: undefined } };
const applying: Partial<RunRecord> = { phase: 'Applying', credentialId: undefined };
const outputs = { network: {} };
const done = { outcome: 'Done' } as const;
const retry = { outcome: 'Retry' } as const;
const failed = { outcome: 'Failed' } as const;
const unreachable = { outcome: 'Retry', reason: 'Unreachable' } as const;
const refused = {
  kind: 'notAccepted',
  code: 'Unreachable',
  message: 'refused',
  retryAfterMs: undefined,
  probeDelayMs: undefined,
} as const satisfies Answer;
const applied = (code?: string): Answer => ({
  kind: 'outcome',
  outcome: { outcome: 'Done', outputs },
  applied: { problem: code === undefined ? undefined : { code, message: 'no' } },
});

/** So many starts for each of two digests in turn, one a second. */
const returning = (times: number): Pick<Memory, 'recentStarts' | 'lastStart'> => ({
  recentStarts: Array.from({ length: 2 * times }, (_, i) => ({
    digest: i % 2 ? 'a' : 'b',
    monotonicMs: now - 1000 * i,
  })),
  lastStart: now,
});

function check(rows: readonly Row[]): void {
  for (const [what, given, step] of rows) {
    it(`${what}: ${step}`, () => {
      const facts = factsOf(given);
      assert.equal(stepText(plan(facts), facts.stored?.record), step);
    });
  }
}

describe('a component without a run', () => {
  check([
    ['never ran', { record: null }, 'start for Created, time'],
    ['never ran, new entry', { record: null, waits: 'Created' }, 'start for Created, manual'],
    ['never ran, suspended', { record: null, may: 'Suspended', waits: 'Created' }, 'rest'],
    ['never ran, deletion', { record: null, may: 'delete', waits: 'Created' }, 'rest'],
    ['never ran, abandoned', { record: null, may: 'Abandoned' }, 'rest'],
    ['1 ms before its interval is over', { wake: 1 }, 'rest 1ms, time'],
    ['its interval is over', { wake: 0 }, 'start for Interval, time'],
    ['its backoff is over', { last: retry, wake: 0 }, 'start for Retry, time'],
    ['it has progressed', { last: { outcome: 'Progressing' }, wake: 0 }, 'start for Requeue, time'],
    ['an unfinished call of an ended run', { waits: 'Forced', memory: { isCalling: true } }, 'rest'],
    ['inputs changed', { digest: 'b', waits: 'InputChanged' }, 'start for InputChanged, input'],
    ['configuration changed', { digest: 'b', waits: 'ConfigChanged' }, 'start for ConfigChanged, manual'],
    ['registration changed', { digest: 'b', waits: 'RegistrationChanged' }, 'start for RegistrationChanged, time'],
    ['same inputs', { waits: 'InputChanged ConfigChanged RegistrationChanged Created' }, 'rest 60min, time'],
    ['other inputs, no trigger', { digest: 'b' }, 'start for InputChanged, input'],
    ['other inputs, remote change', { digest: 'b', waits: 'Remote:x' }, 'start for InputChanged Remote:x, input'],
    ['other inputs, no input arrived', { digest: 'b', waits: 'InputArrived' }, 'start for InputChanged, input'],
    ['inputs changed during its run', { record: { inputsDigest: undefined } }, 'start for InputChanged, input'],
    ['same inputs, remote change', { waits: 'Remote:x InputChanged' }, 'start for Remote:x InputChanged, input'],
    ['forced', { waits: 'Forced' }, 'start for Forced, manual'],
    ['delayed trigger', { digest: 'b', waits: 'RegistrationChanged', waitsMs: 1 }, 'rest 1ms, time'],
    ['delayed trigger, due', { waits: 'Remote', waitsMs: 1, wake: 0 }, 'start for Remote Interval, input'],
    ['199 ms after a start', { waits: 'Forced', memory: { lastStart: now - 199 } }, 'rest 1ms, manual'],
    ['200 ms after a start', { waits: 'Forced', memory: { lastStart: now - 200 } }, 'start for Forced, manual'],
    ['5 starts for the same inputs', { waits: 'Forced', memory: returning(5) }, 'rest 200ms, manual'],
    ['6 starts for the same inputs', { waits: 'Forced', memory: returning(6) }, 'rest 1s, manual'],
    ['8 starts for the same inputs', { waits: 'Forced', memory: returning(8) }, 'rest 4s, manual'],
    ['most starts that stay detectable', { waits: 'Forced', memory: returning(12) }, 'rest 42857ms, manual'],
    ['Failed, remote change', { last: failed, waits: 'Remote' }, 'rest 60min, time'],
    ['Failed, forced', { last: failed, waits: 'Forced' }, 'start for Forced, manual'],
    ['Failed, other inputs', { last: failed, digest: 'b', waits: 'ConfigChanged' }, 'start for ConfigChanged, manual'],
    ['backoff, other inputs', { last: retry, digest: 'b', wake: 9 }, 'start for InputChanged, input'],
    ['suspended', { may: 'Suspended', waits: 'Remote' }, 'store heldBy Suspended'],
    ['suspended, recorded', { may: 'Suspended', record: { heldBy: 'Suspended' }, wake: 0 }, 'rest'],
    ['too large', { may: 'TooLarge', digest: 'b' }, 'store heldBy TooLarge'],
    ['resumed', { record: { heldBy: 'Suspended' } }, 'store heldBy none'],
    ['resumed, due', { record: { heldBy: 'Suspended' }, waits: 'Remote' }, 'start for Remote, input'],
    ['abandoned', { may: 'Abandoned', waits: 'Forced' }, 'retire'],
  ]);

  const unwatched = (sinceMs: number, lastStart = 0): Partial<Memory> => ({
    unwatched: { since: now - sinceMs, periodMs: 1000 },
    lastStart,
  });
  check([
    ['1 ms before its watches are down for a period', { memory: unwatched(999) }, 'rest 1ms, time'],
    ['its watches are down for a period', { memory: unwatched(1000) }, 'start for Remote:unwatched, time'],
    ['its watches are down, 1 ms before', { memory: unwatched(9000, now - 999) }, 'rest 1ms, time'],
    ['its watches are down, suspended', { may: 'Suspended', memory: unwatched(1000) }, 'store heldBy Suspended'],
    ['its watches are down, Failed', { last: failed, memory: unwatched(1000) }, 'rest 60min, time'],
  ]);

  const blocked: Given = { record: { heldBy: 'Unreachable' } };
  const mode: Given = { ...blocked, last: unreachable, digest: 'b', waits: 'InputChanged:/spec/mode' };
  const undone: Given = { record: { seq: 2, inputsDigest: 'a' } };
  const undoneFirst: Given = { last: null, record: { inputsDigest: undefined } };
  check([
    ['not accepted', { ...blocked, last: unreachable, wake: 7 }, 'rest 7ms, time'],
    ['not accepted, other inputs', { ...mode, waitsMs: 7, wake: 7 }, 'rest 7ms, input'],
    ['not accepted, other inputs, due', { ...mode, wake: 0 }, 'start for InputChanged:/spec/mode Retry, input'],
    ['not accepted, new leader', { ...blocked, last: unreachable, digest: 'b', wake: 7 }, 'rest 7ms, input'],
    ['no calls to its endpoint, due', { ...blocked, wake: 0, memory: { lastStart: now - 100 } }, 'rest 100ms, time'],
    ['no calls to its endpoint, no longer due', { ...blocked, wake: 1 }, 'store heldBy none'],
    ['start undone, other inputs', { ...undone, digest: 'b', wake: 7 }, 'rest 7ms, input'],
    [
      'start undone, inputs back',
      { ...undone, waits: 'ConfigChanged', wake: 0 },
      'start for ConfigChanged Interval, time',
    ],
    ['first start undone', { ...undoneFirst, waits: 'Created', wake: 0 }, 'start for Created Interval, manual'],
    ['first start undone, new leader', { ...undoneFirst, wake: 0 }, 'start for Created Interval, time'],
    ['deletion', { may: 'delete', waits: 'Deleting' }, 'start delete for Deleting, manual'],
    ['deletion, new leader', { may: 'delete' }, 'start delete for Deleting, time'],
    ['deletion, forced', { may: 'delete', waits: 'Forced' }, 'start delete for Deleting Forced, manual'],
    ['teardown repeated', { ...teardown, last: retry, wake: 1 }, 'rest 1ms, time'],
  ]);

  const was: Given = { last: { ...notReady, reason: 'MissingAlreadySatisfied' }, entry: withEndpoint };
  const size = [{ path: '/status/outputs/size', want: 'equals', value: 7 }] as const;
  const waits = 'InputChanged:/status InputArrived:/status/outputs/size';
  const sized: Given = { last: { outcome: 'NotReady', missing: size }, digest: 'b', waits };
  const left: Given = {
    ...teardown,
    last: { outcome: 'NotReady', missing: [{ path: '/status/outputs/network', want: 'noReaders' }] },
  };
  check([
    ['input missing', { last: notReady, waits: 'InputArrived InputChanged' }, 'rest 60min, time'],
    ['input arrived', { last: notReady, entry: withEndpoint }, `start for InputArrived:${endpoint}, input`],
    ['input there all along', { ...was, waits: 'InputArrived' }, 'rest 60min, time'],
    ['input missing since', { ...was, memory: { sawMissing: true } }, `start for InputArrived:${endpoint}, input`],
    ['another value', { ...sized, entry: hasOutputs({ size: 6 }) }, 'start for InputChanged:/status, input'],
    ['the wanted value', { ...sized, entry: hasOutputs({ size: 7 }) }, `start for ${waits}, input`],
    ['reader left', { ...left, readers: [{ reads: ['/status/outputs/network/id'] }] }, 'rest 60min, time'],
    ['no reader left', left, 'start delete for InputArrived:/status/outputs/network, input'],
  ]);
});

describe('waiting triggers', () => {
  const rows: readonly (readonly [what: string, given: Given, isOutdated: boolean])[] = [
    ['changed back', { waits: 'InputChanged' }, true],
    ['changed back, 1 ms before they are due', { waits: 'InputChanged', waitsMs: 1 }, false],
    ['changed back, but a run is due', { waits: 'InputChanged', wake: 0 }, false],
    ['changed', { digest: 'b', waits: 'InputChanged' }, false],
    ['changed back while suspended', { may: 'Suspended', waits: 'InputChanged' }, false],
    ['of a component that never ran', { record: null, waits: 'InputChanged' }, false],
    ['of an abandoned component', { may: 'Abandoned', waits: 'Forced', waitsMs: 1 }, true],
  ];
  for (const [what, given, expected] of rows)
    it(`${what} are ${expected ? 'forgotten' : 'kept'}`, () => assert.equal(isOutdated(factsOf(given)), expected));

  it('are merged: each reason once, the most urgent lane, the earliest time', () => {
    const added = stage.triggersOf('InputChanged:/spec InputChanged:/spec');
    const merged = withTriggers(stage.pendingOf('RegistrationChanged', 9), added, { nowMs, monotonicMs: now });
    assert.deepEqual(merged?.triggers.map(reasonText), ['RegistrationChanged', 'InputChanged:/spec']);
    assert.deepEqual([merged?.lane, merged?.dueAt], [1, now]);
  });

  it('are at most eight, and keep a remote change', () => {
    const many = stage.triggersOf(Array.from({ length: 20 }, (_, i) => `InputChanged:/spec/${i}`).join(' '));
    const merged = mergeTriggers(many, stage.triggersOf('Remote')).map(reasonText);
    assert.deepEqual([merged.length, merged.at(-1)], [8, 'Remote']);
  });
});

describe('starts with the same inputs', () => {
  it('are a livelock if more than 5 are within 10 minutes, and repeats of one count once', () => {
    assert.deepEqual(
      [5, 6].map((times) => isLivelock(returning(times).recentStarts, now)),
      [false, true],
    );
    const last = returning(6).recentStarts;
    assert.deepEqual(
      [590_000, 590_001].map((ms) => isLivelock(last, now + ms)),
      [true, false],
    );
    const repeated = Array.from({ length: 30 }, (_, i) => i).reduce(
      (recent, ms) => withStart(recent, 'a', ms),
      withStart([], 'a', 0),
    );
    assert.equal(repeated.length, 1);
  });
});

describe('an active run', () => {
  const interrupted: Given = { run: { isInterrupted: true } };
  const over = 'end Retry(LeaseOver), 500ms Retry, attempt 1';
  const uncalled: Given = { run: { isUncalled: true } };
  const start: Given['start'] = { before: { inputsDigest: 'z', operation: 'reconcile' } };
  check([
    ['its call has a time limit of its own', { run: { deadlineAt: now - 1 }, memory: { isCalling: true } }, 'rest'],
    ['1 ms before its deadline', { run: { deadlineAt: now + 1 } }, 'rest 1ms'],
    ['at its deadline', { run: { deadlineAt: now } }, over],
    ['its answer is lost', interrupted, over],
    ['its outputs are lost', { ...interrupted, record: applying }, over],
    ['its answer is lost, abandoned', { ...interrupted, may: 'Abandoned' }, 'retire after Retry(LeaseOver)'],
    ['other inputs', { run: {}, digest: 'b', waits: 'InputChanged' }, 'rest 9s'],
    ['suspended', { run: {}, may: 'Suspended' }, 'rest 9s'],
    ['abandoned', { run: {}, may: 'Abandoned' }, 'retire after Retry(Abandoned)'],
    ['abandoned after the deletion', { ...draining, run: {}, may: 'Abandoned' }, 'retire after Retry(Abandoned)'],
    ['abandoned, its outcome arrived', { outcome: done, may: 'Abandoned' }, 'retire after Done'],
    ['abandoned, not accepted', { answer: refused, may: 'Abandoned' }, 'retire'],
    ['deletion', { run: { deadlineAt: now + 9500 }, may: 'delete' }, 'store credentialId none, deadlineMs 9500ms'],
    [
      'deletion, suspended',
      { run: { deadlineAt: now + 9500 }, may: 'Suspended', entry: { deleting: true } },
      'store credentialId none, deadlineMs 9500ms',
    ],
    ['deletion, late', { run: { deadlineAt: now - 1 }, may: 'delete' }, 'store credentialId none, deadlineMs 0ms'],
    ['deletion, credential withdrawn', { ...draining, run: {} }, 'rest 9s'],
    [
      'deletion, at its deadline',
      { ...draining, run: { deadlineAt: now } },
      `${over.replace('500ms Retry', '0ms Retry, wake 500ms')}`,
    ],
    ['teardown', { ...teardown, run: {} }, 'rest 9s'],
    ['stored', uncalled, 'call'],
    ['stored, suspended', { ...uncalled, may: 'Suspended' }, 'repeat undone, 0ms Interval, digest none, Suspended'],
    ['stored, deletion', { ...uncalled, may: 'delete', start }, 'repeat undone, 0ms Interval, digest z'],
    ['stored, abandoned', { ...uncalled, may: 'Abandoned' }, 'retire'],
    ['stored teardown', { ...uncalled, ...teardown }, 'call'],
    [
      'stored teardown, suspended',
      { ...teardown, ...uncalled, last: retry, may: 'Suspended', start },
      'repeat undone, 0ms Retry, reconcile, digest z, Suspended',
    ],
  ]);
});

describe('the answer', () => {
  const accepted: Answer = { kind: 'accepted', heartbeatTimeoutMs: minute };
  const notCalled: Answer = { kind: 'notCalled', retryAfterMs: 7000 };
  const deleted: Outcome = { outcome: 'Deleted' };
  const withOutputs: Outcome = { outcome: 'Done', outputs };
  const start: Given['start'] = { before: { inputsDigest: 'z', operation: 'reconcile' } };
  const soon = '500ms Retry, attempt 1';
  const atOnce = 'end Done, 0ms Interval, wake 60min';
  const satisfied = 'end NotReady(MissingAlreadySatisfied), 10min Interval';
  const arrived = 'end NotReady, 0ms Interval, wake 10min';
  check([
    ['202', { answer: accepted }, 'extend to 1min, asynchronous true, deadlineMs 1min'],
    [
      '202, maximum',
      { answer: accepted, registration: { maxRunMs: 3000 } },
      'extend to 2s, asynchronous true, deadlineMs 2s',
    ],
    ['invalid', { answer: { kind: 'failed', code: 'NotJson', message: 'x' } }, `end Retry(NotJson), ${soon}`],
    ['outputs', { outcome: withOutputs }, 'apply {"network":{}}'],
    ['outputs, stored', { outcome: withOutputs, record: applying }, 'apply {"network":{}}'],
    ['outputs, stored, deletion', { outcome: withOutputs, record: applying, may: 'delete' }, 'apply {"network":{}}'],
    ['outputs after the deletion', { ...draining, outcome: withOutputs }, atOnce],
    ['outputs written', { answer: applied() }, 'end Done, 60min Interval'],
    ['outputs foreign', { answer: applied('ForeignPath') }, 'end Failed(ForeignPath), 60min Interval'],
    ['outputs too large', { answer: applied('EntryTooLarge') }, 'end Failed(EntryTooLarge), 60min Interval'],
    ['outputs not written', { answer: applied('NotWritten') }, `end Retry(NotWritten), ${soon}`],
    ['Deleted of a teardown', { ...teardown, outcome: deleted }, 'retire after Deleted'],
    ['Deleted of a reconcile', { outcome: deleted }, `end Retry(InvalidOutcome), ${soon}`],
    ['Done of a teardown', { ...teardown, outcome: done }, `end Retry(InvalidOutcome), ${soon}`],
    ['suspended', { outcome: done, may: 'Suspended' }, 'end Done, 60min Interval, Suspended'],
    ['same inputs', { outcome: done, waits: 'InputChanged' }, 'end Done, 60min Interval'],
    ['other inputs', { outcome: done, digest: 'b' }, atOnce],
    ['inputs changed and returned', { outcome: done, memory: { inputsChanged: true } }, `${atOnce}, digest none`],
    ['remote change', { outcome: done, waits: 'Remote' }, atOnce],
    ['forced', { outcome: done, waits: 'Forced' }, atOnce],
    ['deletion', { outcome: done, may: 'delete' }, atOnce],
    ['Failed, remote change', { outcome: failed, waits: 'Remote' }, 'end Failed, 60min Interval'],
    ['input arrived during the run', { outcome: notReady, entry: withEndpoint, start: { entry: without } }, arrived],
    ['input arrived, new leader', { outcome: notReady, entry: withEndpoint, run: { start: undefined } }, arrived],
    ['input there all along', { outcome: notReady, entry: withEndpoint }, satisfied],
    [
      'input lost',
      { outcome: notReady, start: { entry: { ...without, ...withEndpoint } } },
      'end NotReady, 10min Interval',
    ],
    [
      'third Unreachable',
      { answer: refused, last: unreachable, record: { attempt: 2 } },
      'repeat Retry(Unreachable), 500ms Retry, attempt 3, Unreachable',
    ],
    [
      'Unreachable after Retry',
      { answer: refused, last: retry, record: { attempt: 3 } },
      'repeat Retry(Unreachable), 500ms Retry, attempt 1, Unreachable',
    ],
    [
      'Unreachable, suspended',
      { answer: refused, may: 'Suspended' },
      'repeat Retry(Unreachable), 500ms Retry, attempt 1, Suspended',
    ],
    ['Retry after Unreachable', { outcome: retry, last: unreachable, record: { attempt: 3 } }, `end Retry, ${soon}`],
    [
      'NotReady after Unreachable',
      { outcome: notReady, last: unreachable, record: { attempt: 3 } },
      'end NotReady, 10min Interval',
    ],
    [
      'NotReady after Retry',
      { outcome: notReady, last: retry, record: { attempt: 3 } },
      'end NotReady, 10min Interval, attempt 3',
    ],
    ['Done after Retry', { outcome: done, last: retry, record: { attempt: 3 } }, 'end Done, 60min Interval'],
    ['not called', { answer: notCalled, start }, 'repeat undone, 7s Retry, digest z'],
    [
      'not called for long',
      { answer: { ...notCalled, retryAfterMs: 1e12 }, start },
      'repeat undone, 5min Retry, digest z',
    ],
    ['random 0', { outcome: done, random: 0 }, 'end Done, 54min Interval'],
    ['random 1', { outcome: done, random: 1 }, 'end Done, 66min Interval'],
    ['random 0', { outcome: notReady, random: 0 }, 'end NotReady, 8min Interval'],
    ['random 1', { outcome: notReady, random: 1 }, 'end NotReady, 12min Interval'],
    ['short interval', { outcome: notReady, registration: { intervalMs: 5 * minute } }, 'end NotReady, 5min Interval'],
    ['random 0', { outcome: failed, random: 0 }, 'end Failed, 48min Interval'],
    ['random 1', { outcome: failed, random: 1 }, 'end Failed, 72min Interval'],
  ]);
  for (const [asked, granted] of [
    [0, '1s'],
    [30, '30s'],
    [86_400, '60min'],
  ] as const)
    check([
      [
        `${asked} s`,
        { outcome: { outcome: 'Progressing', requeueAfterSeconds: asked } },
        `end Progressing, ${granted} Requeue`,
      ],
    ]);
  for (const [attempt, delay] of [
    '1s',
    '2s',
    '4s',
    '8s',
    '16s',
    '32s',
    '64s',
    '128s',
    '256s',
    '5min',
    '5min',
  ].entries())
    check([
      [
        `after ${attempt}`,
        { outcome: retry, random: 1, record: { attempt } },
        `end Retry, ${delay} Retry, attempt ${attempt + 1}`,
      ],
    ]);

  const untilAccepted = 'once the endpoint accepts calls; probed again within 30 s';
  const timed = 'at 2026-11-21T09:01:30Z or earlier';
  for (const [code, retryAfterMs, probeDelayMs, next] of [
    ['Unreachable', undefined, undefined, untilAccepted],
    ['Unreachable', 90_000, undefined, untilAccepted],
    ['Busy', undefined, undefined, untilAccepted],
    ['Busy', 90_000, undefined, timed],
    ['Busy', 90_000, 90_000, timed],
    ['Busy', 90_000, 90_001, untilAccepted],
  ] as const) {
    it(`${code}, retry after ${retryAfterMs} ms, probe after ${probeDelayMs} ms: the next run is ${next}`, () => {
      const step = plan(factsOf({ answer: { ...refused, code, retryAfterMs, probeDelayMs } }));
      assert.equal(step.do === 'repeat' && valueAt(runObject(step.next), '/spec/next'), next);
    });
  }
});

describe('the message of a run that ended', () => {
  const limit = 'spec.maxRunSeconds of ComponentReconciler network, 90 s';
  const found = 'the component reported no valid outcome';
  const unread = 'a report that was answered 401 or 403 does not count: check the answers in the log of the component';
  const post = 'the component must POST the outcome to callback of the call';
  const lease = (about: string, check = unread): string =>
    `${found} or heartbeat within its heartbeat timeout (leaseSeconds${about}; ${post}, and until then heartbeats in time, or with more leaseSeconds, which extend a run up to ${limit}; ${check}`;
  const registration = { maxRunMs: 90_000 };
  const deadlineAt = now;
  const over: Given = { registration, record: { asynchronous: true }, run: { deadlineAt } };
  const rejected: Given = { ...over, memory: { rejectedReport: { last: 'TooLarge', shown: undefined } } };
  const drained: Given = { ...over, may: 'delete', record: { asynchronous: true, credentialId: undefined } };
  const rows: readonly (readonly [what: string, given: Given, message: string])[] = [
    [
      'interrupted',
      { run: { isInterrupted: true } },
      'a restart, a change of the leader, or an internal error interrupted the run, and its answer or outputs are lost; the server retries',
    ],
    [
      'deadline',
      { registration, run: { deadlineAt } },
      `${found} before the deadline of the run; check its log; for longer work it must answer 202 and send heartbeats, which extend a run up to ${limit}`,
    ],
    ['heartbeat timeout', { ...over, run: { deadlineAt, heartbeatTimeoutMs: 5000 } }, lease(', 5 s)')],
    ['heartbeat timeout, new leader', over, lease(')')],
    ['rejected report', rejected, lease('); its last report was rejected (TooLarge)', 'check its log')],
    [
      'deletion',
      drained,
      `${found} before the deadline of the run; the entry is being deleted, so no heartbeat extends the run; ${unread}; once a heartbeat is answered 403, the component must stop, and POST its outcome to callback of the call`,
    ],
    [
      'maximum, rounded down',
      { ...over, run: { deadlineAt, startedAt: now - 89_999.5 } },
      `${found} within ${limit}; ${post}; ${unread}; if its work takes longer, increase the field`,
    ],
    ['1 ms before the maximum', { ...over, run: { deadlineAt, startedAt: now - 89_999 } }, lease(')')],
    ['Deleted', { outcome: { outcome: 'Deleted' } }, 'Deleted is not an outcome of operation reconcile; answer Done'],
    ['Done', { ...teardown, outcome: done }, 'Done is not an outcome of operation delete; answer Deleted'],
    ['abandoned', { run: {}, may: 'Abandoned' }, 'the component was abandoned during the run'],
    ['long', { outcome: { outcome: 'Failed', message: 'x'.repeat(3000) } }, 'x'.repeat(1024)],
  ];
  for (const [what, given, message] of rows) {
    it(what, () => {
      const step = plan(factsOf(given));
      const record = step.do === 'end' ? step.next : step.do === 'retire' ? step.ended : undefined;
      assert.equal(record?.lastOutcome?.message, message);
    });
  }

  it('warns of a component that waits for what it has', () => {
    const step = plan(factsOf({ outcome: notReady, entry: withEndpoint }));
    const text = `the component reports ${endpoint} as missing, but the entry contained it when the component was called; check how the component reads the entry`;
    assert.equal(step.do === 'end' && step.warning, text);
  });
});

describe('the record', () => {
  const ran: Given = {
    record: { seq: 4, attempt: 3, reasons: ['Retry'] },
    last: { seq: 4, outcome: 'Retry', reason: 'NotJson' },
  };
  const past = {
    seq: 4,
    operation: 'reconcile',
    reasons: ['Retry'],
    outcome: 'Retry',
    reason: 'NotJson',
    startedAtMs: nowMs - 2000,
    durationMs: 1000,
  } as const;
  const started = (given: Given): RunRecord => {
    const triggers = stage.triggersOf(
      'Remote:1 Remote:2 Remote:3 Remote:4 Remote:5 Remote:6 Remote:7 Remote:8 Remote:9',
    );
    return startedRecord(factsOf(given), { do: 'start', operation: 'reconcile', triggers, lane: 1 }, 'JTI=5');
  };

  it('of a start has the next number, its deadline, at most eight reasons, and the run before it', () => {
    const { entry, lastOutcome, reasons, ...next } = started(ran);
    assert.deepEqual([entry.name, lastOutcome?.seq, reasons.length], ['c1', 4, 8]);
    assert.deepEqual(next, {
      component: 'network',
      seq: 5,
      phase: 'Running',
      operation: 'reconcile',
      inputsDigest: 'a',
      credentialId: 'JTI=5',
      previousCredential: undefined,
      startedAtMs: nowMs,
      asynchronous: false,
      deadlineMs: nowMs + 10_000,
      attempt: 3,
      nextAtMs: undefined,
      heldBy: undefined,
      history: [past],
    });
  });

  it('of a start counts from 0 with other inputs or another operation', () => {
    assert.equal(started({ record: null }).seq, 1);
    assert.equal(started({ ...ran, digest: 'b' }).attempt, 0);
    assert.equal(started({ ...ran, record: { ...ran.record, operation: 'delete' } }).attempt, 0);
  });

  it('keeps ten past runs, latest first, and none that was undone', () => {
    const history = Array.from({ length: 10 }, (_, i) => ({ ...past, seq: 3 - i }));
    const seqs = (seq: number) =>
      started({ ...ran, record: { ...ran.record, seq, history } }).history.map((run) => run.seq);
    assert.deepEqual(seqs(4), [4, 3, 2, 1, 0, -1, -2, -3, -4, -5]);
    assert.equal(seqs(5)[0], 3);
  });

  it('of an ended run has no credential and no deadline, and since when it has its outcome', () => {
    const record = { asynchronous: true, previousCredential: { id: 'JTI=0', expiresAtMs: nowMs } };
    for (const [outcome, sinceMs] of [
      [done, nowMs - 1000],
      [failed, nowMs],
    ] as const) {
      const step = plan(factsOf({ outcome, last: {}, record }));
      assert.ok(step.do === 'end');
      const { phase, credentialId, previousCredential, asynchronous, deadlineMs, lastOutcome } = step.next;
      assert.deepEqual(
        [phase, credentialId, previousCredential, asynchronous, deadlineMs],
        ['Idle', undefined, undefined, false, undefined],
      );
      const { outcome: name, endedAtMs, durationMs } = lastOutcome ?? {};
      assert.deepEqual(
        [lastOutcome?.seq, name, lastOutcome?.sinceMs, endedAtMs, durationMs],
        [2, outcome.outcome, sinceMs, nowMs, 1000],
      );
    }
  });

  for (const [what, inMs, agoMs, id, step] of [
    ['less than a tenth later', 54_001, 0, 'JTI=1', 'extend to 1min, unstored'],
    ['a tenth later', 54_000, 0, 'JTI=1', 'extend to 1min, deadlineMs 1min'],
    ['a tenth earlier', 66_000, 0, 'JTI=1', 'extend to 1min, deadlineMs 1min'],
    ['a new token', 60_000, 0, 'JTI=2', 'extend to 1min, credentialId JTI=2, previousCredential JTI=1'],
    ['its maximum in 40 s', 9000, 50_000, 'JTI=1', 'extend to 40s, deadlineMs 40s'],
    ['its maximum passed', 9000, 90_001, 'JTI=1', 'extend to 0ms, deadlineMs 0ms'],
  ] as const) {
    it(`of a heartbeat, ${what}: ${step}`, () => {
      const record = { asynchronous: true, deadlineMs: nowMs + inMs };
      const facts = factsOf({ record, run: { startedAt: now - agoMs }, registration: { maxRunMs: 90_000 } });
      const { stored, memory } = facts;
      assert.ok(stored && memory.run);
      const extended = extension(facts, stored.record, memory.run, minute, { id });
      assert.equal(stepText({ do: 'extend', ...extended }, stored.record), step);
      if (id === 'JTI=2') assert.equal(extended.next?.previousCredential?.expiresAtMs, nowMs + 10 * minute);
    });
  }
});

const seed = chooseSeed(20261122);

describe(`any facts, from DRAWBRIDGE_SEED=${seed}`, () => {
  it('yield a step and a status without an error or mutation, and keep what no run may change', () => {
    const seen = new Set<string>();
    for (let i = 0; i < runs(60_000); i += 1) {
      const facts = deepFreeze(factsOf(anyGiven(seededRandom(seed + i))));
      const step = plan(facts);
      statusOf(facts, i % 2 ? { code: 'Busy', message: 'x' } : undefined);
      seen.add(step.do);
      const before = facts.stored?.record;
      const next = 'next' in step ? step.next : step.do === 'retire' ? step.ended : undefined;
      if (!next) continue;
      const about = `seed ${seed + i}: ${JSON.stringify(step)}`;
      const hasCredential = next.credentialId !== undefined || next.previousCredential !== undefined;
      assert.ok(!hasCredential || next.phase === 'Running', `a credential outlives its run, ${about}`);
      assert.ok(before && next.seq >= before.seq, about);
      const isEnd = step.do === 'end' || step.do === 'repeat' || step.do === 'retire';
      if (!isEnd || next.lastOutcome?.seq !== before.seq) assert.equal(next.lastOutcome, before.lastOutcome, about);
      if (isEnd) assert.deepEqual([next.phase, next.asynchronous, next.deadlineMs], ['Idle', false, undefined], about);
    }
    assert.equal([...seen].sort().join(), 'apply,call,end,extend,repeat,rest,retire,start,store');
  });
});

function anyGiven(random: () => number): Given {
  const oneOf = <T>(...items: readonly [T, ...T[]]): T => items[Math.floor(random() * items.length)] ?? items[0];
  const is = (share: number): boolean => random() < share;
  const progressing = { outcome: 'Progressing', requeueAfterSeconds: random() * 100_000, outputs } as const;
  const outcome = oneOf<Outcome>(done, { ...done, outputs }, notReady, progressing, retry, failed, {
    outcome: 'Deleted',
  });
  const retryAfterMs = oneOf(undefined, -5, 1e12);
  const answer = oneOf<Answer>(
    { kind: 'outcome', outcome },
    applied(oneOf(undefined, 'ForeignPath')),
    { kind: 'accepted', heartbeatTimeoutMs: random() * 100_000 },
    { kind: 'failed', code: 'NotJson', message: 'x' },
    { ...refused, retryAfterMs, probeDelayMs: oneOf(undefined, 0, 30_000) },
    { kind: 'notCalled', retryAfterMs: retryAfterMs ?? 0 },
  );
  const isActive = is(0.5);
  const phase = isActive ? oneOf('Running', 'Running', 'Applying') : 'Idle';
  const hasCredential = phase === 'Running' && is(0.7);
  const latest = Date.parse('9999-12-31T23:59:59Z');
  const reasons = Object.values(triggerReasons).filter(() => is(0.15));
  const reason = oneOf(undefined, 'Busy', 'MissingAlreadySatisfied');
  const record: Partial<RunRecord> = {
    phase,
    operation: oneOf('reconcile', 'delete'),
    asynchronous: isActive && is(0.5),
    credentialId: hasCredential ? 'JTI=1' : undefined,
    previousCredential: hasCredential && is(0.5) ? { id: 'JTI=0', expiresAtMs: 0 } : undefined,
    inputsDigest: oneOf('a', 'b', undefined),
    heldBy: oneOf(undefined, 'Unreachable', 'Suspended'),
    nextAtMs: oneOf(undefined, 0, nowMs, latest),
    deadlineMs: isActive ? oneOf(undefined, 0, nowMs + 5000, latest) : undefined,
  };
  const deadlineAt = now + oneOf(-1, 0, 5000);
  const run = { isUncalled: is(0.2), isInterrupted: is(0.1), deadlineAt, ...(is(0.2) ? { start: undefined } : {}) };
  return {
    digest: oneOf('a', 'b'),
    may: oneOf('reconcile', 'reconcile', 'delete', 'Suspended', 'Abandoned', 'TooLarge'),
    random: random(),
    start: { entry: oneOf(without, { ...without, ...withEndpoint }) },
    entry: oneOf({}, withEndpoint),
    last: oneOf(null, { outcome: outcome.outcome, reason, missing: notReady.missing }),
    record: !isActive && is(0.1) ? null : record,
    ...(isActive && { run }),
    ...(isActive && is(0.8) && { answer }),
    ...(reasons.length > 0 && { waits: reasons.join(' '), waitsMs: oneOf(0, 0, minute) }),
    wake: oneOf(-5, 0, 1000, hour),
    memory: {
      isCalling: is(0.2),
      inputsChanged: is(0.2),
      sawMissing: is(0.5),
      lastStart: oneOf(undefined, now - 100, now - 1000),
    },
  };
}

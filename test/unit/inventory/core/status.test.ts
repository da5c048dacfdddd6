import assert from 'node:assert/strict';
import { forceAnnotation } from '../../../../src/api/inventory/names.ts';
import type { EndpointProblem } from '../../../../src/inventory/core/memory.ts';
import type { RunRecord } from '../../../../src/inventory/core/run-record.ts';
import { type KeyStatus, notRegisteredStatus, statusOf } from '../../../../src/inventory/core/status.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import { factsOf, type Given, nowMs } from '../../../support/inventory/plan-facts.ts';

/** `status`: `State (Reason): message`. */
type Row = readonly [what: string, given: Given, status: string];

const textOf = ({ state, reason, message }: KeyStatus): string =>
  `${state}${reason === undefined ? '' : ` (${reason})`}${message === undefined ? '' : `: ${message}`}`;

function check(rows: readonly Row[], problem?: EndpointProblem): void {
  for (const [what, given, status] of rows)
    it(`${what}: ${status}`, () => assert.equal(textOf(statusOf(factsOf(given), problem)), status));
}

const abandon = 'abandon.inventory.drawbridge.dev/network';
const finish = `to finish without the teardown, annotate the entry with ${abandon}=REASON`;
const force = `annotate the entry with ${forceAnnotation('network')}=NEW-VALUE`;
const missing = [{ path: '/status/outputs/cluster/endpoint', want: 'present' }] as const;
const notReady = { outcome: 'NotReady', missing } as const;
const failed = { outcome: 'Failed', message: 'no such region' } as const;
const retry = { outcome: 'Retry', message: 'provider 502' } as const;
const progressing = { outcome: 'Progressing', message: '3 of 5 nodes' } as const;
const busy = { outcome: 'Retry', reason: 'Busy', message: 'status 503' } as const;
const leaseOver = { outcome: 'Retry', reason: 'LeaseOver', message: 'late' } as const;

/** The entry has this status of the component. */
const written = (rest: Partial<Entry['components'][number]>): Partial<Entry> => ({
  components: [{ name: 'network', state: 'Done', since: '', ...rest }],
});

describe('the status of a component', () => {
  check([
    ['never ran', { record: null }, 'Progressing (Pending)'],
    ['no run has ended', { last: null }, 'Progressing (Pending)'],
    ['Done', {}, 'Done'],
    ['Done, other inputs', { digest: 'b' }, 'Progressing (InputsChanged)'],
    ['Done, other inputs, forced', { digest: 'b', waits: 'Forced Interval' }, 'Progressing (Forced)'],
    [
      'Done, other inputs, forced and changed',
      { digest: 'b', waits: 'Forced ConfigChanged' },
      'Progressing (InputsChanged)',
    ],
    ['Done, inputs changed during the run', { record: { inputsDigest: undefined } }, 'Progressing (InputsChanged)'],
    ['NotReady', { last: notReady }, 'NotReady'],
    ['Progressing', { last: progressing }, 'Progressing: 3 of 5 nodes'],
    ['Retry', { last: retry }, 'Retrying: provider 502'],
    ['code of the server', { last: leaseOver }, 'Retrying (LeaseOver): late'],
    ['Failed', { last: failed }, `Failed: no such region; ${force} to repeat the run`],
    ['Failed without a message', { last: { outcome: 'Failed' } }, `Failed: ${force} to repeat the run`],
    [
      'not applicable by labels',
      { may: 'NotApplicable' },
      'NotApplicable (NotApplicable): its selector does not match the labels of the entry',
    ],
    [
      'not applicable by mode',
      { may: 'NotApplicable', registration: { modes: ['byoc'] } },
      'NotApplicable (NotApplicable): runs only in mode byoc',
    ],
    [
      'disabled',
      { may: 'Disabled' },
      'NotApplicable (Disabled): spec.components.network.enabled is false; set it to true to run the component',
    ],
    ['too large', { may: 'TooLarge' }, 'Failed (TooLarge)'],
    ['registration refused', { may: 'RegistrationRefused' }, 'Failed (RegistrationRefused)'],
    [
      'abandoned',
      { may: 'Abandoned', entry: { annotations: { [abandon]: 'lost' }, deleting: true } },
      'NotApplicable (Abandoned): abandoned by an unknown user: lost',
    ],
  ]);

  it('has the missing inputs, the observed inputs, and the message of a livelock', () => {
    const {
      missing: inputs,
      observedInputs,
      livelock,
    } = statusOf(factsOf({ last: notReady, memory: { livelock: 'x' } }), undefined);
    assert.deepEqual([inputs, observedInputs, livelock], [missing, 'a', 'x']);
  });

  const ineffective = `annotation ${abandon} has no effect, because the webhook recorded no user for it; set another reason`;
  const annotations = { [abandon]: 'lost' };
  const problem = { state: 'Failed', reason: 'NotStored', message: 'x' } as const;
  check([
    ['unrecorded abandonment', { entry: { annotations } }, `Done: ${ineffective}`],
    [
      'unrecorded abandonment, message',
      { last: retry, entry: { annotations } },
      `Retrying: ${ineffective}; provider 502`,
    ],
    [
      'unrecorded abandonment, shown, briefly busy',
      {
        last: busy,
        record: { attempt: 1, nextAtMs: nowMs },
        entry: { annotations, ...written({ message: `${ineffective}; x`, observedInputs: 'a' }) },
      },
      `Done: ${ineffective}; x`,
    ],
    ['failed step', { last: retry, memory: { problem } }, 'Failed (NotStored): x'],
  ]);

  it('of an unregistered component says how to leave it', () => {
    const message = `component network is not registered; register it again or, to leave what it created, abandon it: annotate the entry with ${abandon}=REASON`;
    assert.equal(
      textOf(notRegisteredStatus({ deleting: false }, 'network')),
      `NotApplicable (NotRegistered): ${message}`,
    );
    assert.equal(textOf(notRegisteredStatus({ deleting: true }, 'network')), `Deleting (NotRegistered): ${message}`);
  });
});

describe('the status of a component that runs', () => {
  const since = 'Progressing (Running): running since 2026-11-21T08:59:59Z';
  const record: Partial<RunRecord> = { asynchronous: true };
  const run: Given = { run: {}, record, digest: 'b' };
  const same: Given['start'] = { before: { inputsDigest: 'a', operation: 'reconcile' } };
  const shown = { code: 'InvalidReport', atMs: nowMs } as const;
  const rejectedReport = { last: 'TooLarge', shown } as const;
  check([
    ['first run', { run: {} }, 'Progressing (Pending)'],
    ['first asynchronous run', run, since],
    ['its outputs are written', { ...run, record: { ...record, phase: 'Applying' } }, since],
    ['start unknown', { ...run, record: { ...record, startedAtMs: undefined } }, 'Progressing (Running): running'],
    ['suspended', { ...run, may: 'Suspended' }, since],
    [
      'rejected report',
      { ...run, memory: { rejectedReport } },
      `${since}; report rejected (InvalidReport) at 2026-11-21T09:00:00Z, see the log of the component`,
    ],
    [
      'heartbeat since the rejected report',
      { ...run, memory: { rejectedReport: { last: 'TooLarge', shown: undefined } } },
      since,
    ],
    [
      'after NotReady',
      { ...run, last: notReady },
      `${since}; last outcome: waits for /status/outputs/cluster/endpoint`,
    ],
    ['after Failed', { ...run, last: failed }, `${since}; last outcome: Failed: no such region`],
    ['after Retry', { ...run, last: retry }, `${since}; last outcome: Retry: provider 502`],
    ['after Progressing', { ...run, last: progressing }, `${since}; last outcome: Progressing: 3 of 5 nodes`],
    [
      'after Progressing, same inputs',
      { ...run, last: progressing, digest: 'a', start: same },
      'Progressing: 3 of 5 nodes',
    ],
    ['after Done', { ...run, last: {} }, 'Progressing (InputsChanged)'],
    ['after Done, forced', { ...run, last: {}, start: { triggers: [] }, waits: 'Forced' }, 'Progressing (Forced)'],
    ['after Done, same inputs', { ...run, last: {}, digest: 'a', start: same }, 'Done'],
    ['after Retry, synchronous', { run: {}, last: retry }, 'Retrying: provider 502'],
  ]);
});

describe('the status of a component whose entry is suspended', () => {
  const may = 'Suspended';
  const shown = 'Suspended (Suspended)';
  const entry = { deleting: true, suspended: true };
  const waits =
    'the entry is being deleted, but spec.suspend is true: the server starts no teardown; set it to false to tear the component down';
  const teardown: Partial<RunRecord> = { operation: 'delete' };
  check([
    ['no run has ended', { may, last: null }, `${shown}: no run has ended`],
    ['same inputs', { may }, 'Done'],
    ['other inputs', { may, digest: 'b' }, `${shown}: a run is due`],
    ['NotReady', { may, last: notReady }, `${shown}: last outcome: waits for /status/outputs/cluster/endpoint`],
    ['Failed', { may, last: failed }, `${shown}: last outcome: Failed: no such region`],
    ['Retry', { may, last: retry }, `${shown}: last outcome: Retry: provider 502`],
    ['teardown failed', { may, last: failed, record: teardown }, `${shown}: last outcome: Failed: no such region`],
    ['teardown runs', { may, run: {}, record: teardown }, 'Deleting'],
    ['Done, deletion', { may, entry }, `${shown}: ${waits}`],
    ['Retry, deletion', { may, entry, last: retry }, `${shown}: ${waits}; last outcome: Retry: provider 502`],
  ]);
});

describe('the status of a teardown', () => {
  const record: Partial<RunRecord> = { operation: 'delete' };
  const asynchronous: Partial<RunRecord> = { asynchronous: true };
  const teardown: Given = { may: 'delete', record };
  const again: Given = { may: 'delete', run: {}, record: { ...record, ...asynchronous } };
  const before = {
    seq: 1,
    operation: 'delete',
    reasons: [],
    outcome: 'Retry',
    reason: undefined,
    startedAtMs: 0,
    durationMs: 0,
  } as const;
  const history = [before];
  const reconciled: Partial<RunRecord> = { ...again.record, history: [{ ...before, operation: 'reconcile' }] };
  const repeated: Given = { ...again, record: { ...again.record, history } };
  const satisfied = { outcome: 'NotReady', reason: 'MissingAlreadySatisfied' } as const;
  const noReaders = [{ path: '/status/outputs/network', want: 'noReaders' }] as const;
  const rejectedReport = { last: undefined, shown: { code: 'TooLarge', atMs: nowMs } } as const;
  const mustRetry =
    'while other objects use what the component created, the component must answer Retry instead of NotReady';
  const remedy = `${force} to repeat the teardown, or with ${abandon}=REASON to finish without it`;
  check([
    ['not started', { may: 'delete' }, 'Deleting'],
    ['no record', { may: 'delete', record: null }, 'Deleting'],
    ['Failed', { ...teardown, last: failed }, `Deleting (Failed): no such region; ${remedy}`],
    ['Retry', { ...teardown, last: retry }, 'Deleting (Retry): provider 502'],
    ['no valid outcome', { ...teardown, last: leaseOver }, `Deleting (LeaseOver): late; ${finish}`],
    ['Progressing', { ...teardown, last: progressing }, 'Deleting (Progressing): 3 of 5 nodes'],
    ['NotReady', { ...teardown, last: notReady }, 'Deleting (NotReady)'],
    [
      'waits for readers that are gone',
      { ...teardown, last: { ...satisfied, missing: noReaders } },
      `Deleting (MissingAlreadySatisfied): ${mustRetry}; ${finish}`,
    ],
    [
      'waits for what it has',
      { ...teardown, last: { ...satisfied, missing } },
      `Deleting (MissingAlreadySatisfied): check how the component reads the entry; ${finish}`,
    ],
    ['called', { may: 'delete', run: {}, record, last: failed }, 'Deleting'],
    ['accepted', again, 'Deleting (Running): tearing down'],
    ['after a reconcile', { ...again, record: reconciled, last: failed }, 'Deleting (Running): tearing down'],
    [
      'rejected report',
      { ...again, memory: { rejectedReport } },
      'Deleting (Running): tearing down; report rejected (TooLarge) at 2026-11-21T09:00:00Z, see the log of the component',
    ],
    [
      'after Retry',
      { ...repeated, last: retry },
      'Deleting (Running): tearing down; last outcome: Retry: provider 502',
    ],
    [
      'after no outcome',
      { ...repeated, last: leaseOver },
      `Deleting (Running): tearing down; last outcome: Retry (LeaseOver): late; ${finish}`,
    ],
    ['after a synchronous run', { may: 'delete', run: {} }, 'Deleting'],
    [
      'after an asynchronous run',
      { may: 'delete', run: {}, record: asynchronous },
      `Deleting (Running): the teardown waits for the run that began at 2026-11-21T08:59:59Z; it ends at 2026-11-21T09:00:09Z at the latest; ${finish}`,
    ],
  ]);
});

describe('the status of a component that is busy', () => {
  const current = written({ observedInputs: 'a' });
  const stays: Given = { last: busy, entry: current, record: { attempt: 4, nextAtMs: nowMs + 59_000 } };
  const shown = 'Retrying (Busy): status 503';
  check([
    ['fourth answer, a minute', stays, 'Done'],
    ['fifth answer', { ...stays, record: { ...stays.record, attempt: 5 } }, shown],
    ['more than a minute', { ...stays, record: { attempt: 1, nextAtMs: nowMs + 59_001 } }, shown],
    ['called again', { ...stays, run: {}, record: { attempt: 4 } }, 'Done'],
    ['other inputs', { ...stays, digest: 'b' }, shown],
    [
      'status of a busy component',
      { ...stays, entry: written({ observedInputs: 'a', state: 'Retrying', reason: 'Busy', message: 'x' }) },
      shown,
    ],
    ['unreachable', { ...stays, last: { ...busy, reason: 'Unreachable' } }, 'Retrying (Unreachable): status 503'],
    ['no status', { ...stays, entry: {} }, shown],
  ]);

  it('keeps the observed inputs of the entry', () => {
    const given: Given = { last: busy, entry: written({ observedInputs: 'z' }) };
    assert.equal(statusOf(factsOf(given), undefined).observedInputs, 'z');
  });
});

describe('the status of a component whose endpoint accepts no calls', () => {
  const text = 'the endpoint accepts no calls: refused; see: kubectl get componentreconciler network -o wide';
  const down = `Retrying (Unreachable): ${text}`;
  const held: Given = { record: { heldBy: 'Unreachable' } };
  const removal: Given = { may: 'delete', record: { operation: 'delete', heldBy: 'Unreachable' } };
  check(
    [
      ['nothing waits', { last: retry }, 'Retrying: provider 502'],
      ['never ran', { record: null }, down],
      ['a trigger waits', { last: retry, waits: 'Retry' }, down],
      ['due', { ...held, last: retry }, down],
      ['runs', { run: {}, last: retry }, down],
      ['other inputs', { ...held, digest: 'b' }, down],
      ['Done', held, 'Done'],
      ['NotReady', { ...held, last: notReady }, 'NotReady'],
      ['Progressing', { ...held, last: progressing }, 'Progressing: 3 of 5 nodes'],
      ['its own call failed', { ...held, last: busy }, 'Retrying (Busy): status 503'],
      ['its own call failed, shown before', { ...held, last: busy, entry: written({ message: text }) }, down],
      ['teardown', { ...removal, last: retry }, `Deleting (Unreachable): ${text}; ${finish}`],
      ['teardown waits', { ...removal, last: notReady }, 'Deleting (NotReady)'],
    ],
    { code: 'Unreachable', message: 'refused' },
  );
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { readOutcome } from '../../../../src/api/inventory/contract/outcome.ts';
import { readAccepted, readReport } from '../../../../src/api/inventory/contract/report.ts';

const run = { id: 'u.network.1', operation: 'reconcile' } as const;
const missing = [{ path: '/status/outputs/network/vnetName', want: 'present' }];

describe('the contract with components', () => {
  for (const [why, body, ok] of [
    ['takes Done', { outcome: 'Done', outputs: { network: { a: 1 } } }, true],
    ['takes the removal of outputs', { outcome: 'Done', outputs: { network: null } }, true],
    ['accepts missing inputs', { outcome: 'NotReady', missing }, true],
    ['accepts equals null', { outcome: 'NotReady', missing: [{ path: '/spec/a', want: 'equals', value: null }] }, true],
    ['rejects NotReady without missing inputs', { outcome: 'NotReady' }, false],
    ['rejects equals without a value', { outcome: 'NotReady', missing: [{ path: '/spec/a', want: 'equals' }] }, false],
    [
      'rejects a value that is too long to show',
      { outcome: 'NotReady', missing: [{ path: '/spec/a', want: 'equals', value: 'x'.repeat(1_023) }] },
      false,
    ],
    ['rejects an invalid path', { outcome: 'NotReady', missing: [{ path: '/metadata', want: 'present' }] }, false],
    ['rejects another run', { outcome: 'Done', run: 'u.network.2' }, false],
    ['rejects outputs of a failure', { outcome: 'Failed', outputs: {} }, false],
    ['rejects a negative delay', { outcome: 'Progressing', requeueAfterSeconds: -1 }, false],
    ['rejects a list', [], false],
    ['rejects undefined', undefined, false],
  ] as const) {
    it(`${why} as an outcome`, () => assert.equal(readOutcome(body, run).ok, ok));
  }

  it('accepts Deleted for delete', () => {
    assert.equal(readOutcome({ outcome: 'Deleted' }, { ...run, operation: 'delete' }).ok, true);
  });

  for (const [operation, found, success] of [
    ['reconcile', 'Great', 'Done'],
    ['reconcile', 'Deleted', 'Done'],
    ['delete', 'Gone', 'Deleted'],
    ['delete', 'Done', 'Deleted'],
  ] as const) {
    it(`names the outcomes of the operation ${operation} if a component answers ${found}`, () => {
      const allowed = `"${success}", "NotReady", "Progressing", "Retry", "Failed"`;
      const message = `must be one of ${allowed} for the operation ${operation}; found "${found}"`;
      assert.deepEqual(readOutcome({ outcome: found, outputs: {} }, { ...run, operation }), {
        ok: false,
        errors: [{ field: 'outcome', message }],
      });
    });
  }

  it('requests another run after 15 seconds for Progressing without a time', () => {
    const read = readOutcome({ outcome: 'Progressing' }, run);
    assert.deepEqual(read, { ok: true, value: { outcome: 'Progressing', requeueAfterSeconds: 15 } });
  });

  it('drops a reason, so that no component can pose as unreachable, abandoned, or suspended', () => {
    const read = readOutcome({ outcome: 'Retry', reason: 'Unreachable' }, run);
    assert.deepEqual(read, { ok: true, value: { outcome: 'Retry' } });
  });

  it('cuts a long message', () => {
    const read = readOutcome({ outcome: 'Retry', message: 'x'.repeat(5000) }, run);
    assert.equal(read.ok && read.value.message?.length, 1024);
  });

  it('distinguishes heartbeats from outcomes, only for the right run', () => {
    assert.deepEqual(readReport({ run: run.id, heartbeat: { leaseSeconds: 9 } }, run), {
      ok: true,
      value: { kind: 'heartbeat', leaseSeconds: 9 },
    });
    assert.deepEqual(readReport({ run: run.id, outcome: 'Done' }, run), {
      ok: true,
      value: { kind: 'outcome', outcome: { outcome: 'Done' } },
    });
    assert.equal(readReport({ outcome: 'Done' }, run).ok, false);
    assert.equal(readReport({ run: run.id, heartbeat: {}, outcome: 'Done' }, run).ok, false);
  });

  it('names both kinds of reports if a report is neither', () => {
    for (const body of [{ leaseSeconds: 60 }, { outcome: null }])
      assert.deepEqual(readReport({ run: run.id, ...body }, run), {
        ok: false,
        errors: [
          {
            field: 'outcome',
            message:
              'is required, unless the report is a heartbeat; send a heartbeat as {"run": "u.network.1", "heartbeat": {"leaseSeconds": 60}}',
          },
        ],
      });
  });

  it('reads any JSON without throwing', () => {
    const body = fc.jsonValue();
    fc.assert(
      fc.property(body, (value) => {
        readAccepted(value);
        readOutcome(value, run);
        readReport(value, run);
      }),
      { seed: 6, numRuns: 500 },
    );
  });
});

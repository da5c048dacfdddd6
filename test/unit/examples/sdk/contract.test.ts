import assert from 'node:assert/strict';
import fc from 'fast-check';
import { readReconcileRequest } from '../../../../examples/inventory/components/sdk/contract.ts';
import type { ReconcileRequest } from '../../../../src/api/inventory/contract/request.ts';

const request: ReconcileRequest = {
  protocol: 'v1',
  run: { id: 'u.network.1', seq: 1, attempt: 0, deadline: '2026-11-21T09:30:05Z', reasons: ['SpecChanged'] },
  operation: 'reconcile',
  component: 'network',
  entry: {
    url: 'https://api.example.org/apis/inventory.drawbridge.dev/v1alpha1/namespaces/a/clusterinventories/b',
    id: 'u',
    resourceVersion: '7',
  },
  auth: { token: 'x.y.z', expires: '2026-11-21T09:40:00Z' },
  callback: 'https://callback.example.org/v1/runs/u.network.1',
};

describe('a request that the SDK reads', () => {
  it('is that of the server, without fields of a later release', () => {
    const later: unknown = { ...request, later: 1, run: { ...request.run, later: 1 } };
    assert.deepEqual(readReconcileRequest(later), request);
  });

  for (const field of ['protocol', 'run', 'operation', 'component', 'entry', 'auth', 'callback']) {
    it(`is rejected without ${field}`, () => {
      const expected = { code: 'InvalidRequest', message: new RegExp(`^${field} must be `) };
      assert.throws(() => readReconcileRequest({ ...request, [field]: undefined }), expected);
    });
  }

  for (const [field, change] of [
    ['run.seq', { run: { ...request.run, seq: 0 } }],
    ['run.deadline', { run: { ...request.run, deadline: 'soon' } }],
    ['run.reasons', { run: { ...request.run, reasons: [7] } }],
    ['auth.ca', { auth: { ...request.auth, ca: 7 } }],
    ['entry.id', { entry: { ...request.entry, id: '' } }],
  ] as const) {
    it(`is rejected with an invalid ${field}`, () => {
      const expected = { code: 'InvalidRequest', message: new RegExp(`^${field} must be `) };
      assert.throws(() => readReconcileRequest({ ...request, ...change }), expected);
    });
  }

  it('causes no other error, whatever it contains', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        try {
          readReconcileRequest(value);
        } catch (error) {
          assert.equal((error as { code?: unknown }).code, 'InvalidRequest');
        }
      }),
    );
  });
});

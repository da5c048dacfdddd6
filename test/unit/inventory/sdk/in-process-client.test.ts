import assert from 'node:assert/strict';
import type { Outcome } from '../../../../src/api/inventory/contract/outcome.ts';
import type { Component, EntryAccessor } from '../../../../src/inventory/ports.ts';
import type { Registration } from '../../../../src/inventory/registration.ts';
import { inProcessClient } from '../../../../src/inventory/sdk/in-process-client.ts';
import { aborted } from '../../../../src/kit/promises.ts';
import { ConformanceWorld, component } from '../../../support/inventory/conformance-world.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const registration = { endpoint: { inProcess: component }, timeoutMs: 5_000 } as unknown as Registration;

describe('components in this process', () => {
  const clock = new SimulatedClock();
  const request = new ConformanceWorld().request();
  const clientOf = (reconcile: Component['reconcile']) =>
    inProcessClient({
      components: new Map([[component, { name: component, reconcile }]]),
      openEntry: () => ({}) as EntryAccessor,
      reports: { report: () => Promise.resolve({ status: 200, extension: undefined }) },
      clock,
    });
  const invoke = (reconcile: Component['reconcile'], signal = new AbortController().signal) =>
    clientOf(reconcile).invoke(registration, request, signal);
  const answering =
    (outcome: unknown): Component['reconcile'] =>
    () =>
      Promise.resolve(outcome as Outcome);

  for (const [what, outcome, code] of [
    ['nothing', undefined, 'NotJson'],
    ['a text', 'Done', 'InvalidOutcome'],
    ['no outcome', {}, 'InvalidOutcome'],
    ['an outcome of the operation delete', { outcome: 'Deleted' }, 'InvalidOutcome'],
    ['NotReady without saying for what', { outcome: 'NotReady', missing: [] }, 'InvalidOutcome'],
    ['an outcome of another run', { outcome: 'Done', run: 'other.player.1' }, 'WrongRun'],
    ['outputs with a prototype', { outcome: 'Done', outputs: JSON.parse('{"__proto__": {"x": 1}}') }, 'NotJson'],
    ['outputs that are too large', { outcome: 'Done', outputs: { player: { x: 'x'.repeat(140_000) } } }, 'TooLarge'],
  ] as const) {
    it(`are validated like others: ${what}`, async () => {
      const reply = await invoke(answering(outcome));
      assert.deepEqual([reply.kind, 'code' in reply && reply.code], ['failed', code]);
    });
  }

  const reporting =
    (leaseSeconds: number): Component['reconcile'] =>
    async (run) => {
      await run.heartbeat(leaseSeconds);
      return { outcome: 'Done' };
    };

  it('continue asynchronously after their first heartbeat', async () => {
    assert.deepEqual(await invoke(reporting(3600)), { kind: 'accepted', heartbeatTimeoutMs: 3_600_000 });
  });

  for (const leaseSeconds of [0, 3601, 1.5]) {
    it(`are rejected for a heartbeat with leaseSeconds ${leaseSeconds}`, async () => {
      const reply = await invoke(reporting(leaseSeconds));
      assert.deepEqual([reply.kind, 'code' in reply && reply.code], ['failed', 'InvalidOutcome']);
      assert.match('message' in reply ? (reply.message ?? '') : '', /^leaseSeconds /);
    });
  }

  it('count as Retry if they throw', async () => {
    const reply = await invoke(() => Promise.reject(new Error('away')));
    assert.deepEqual(reply, { kind: 'outcome', outcome: { outcome: 'Retry', message: 'away' } });
  });

  it('are abandoned after the timeout of their registration', async () => {
    let reason = '';
    const reply = invoke(async ({ signal }) => {
      await aborted(signal);
      reason = String(signal.reason);
      return { outcome: 'Done' };
    });
    await clock.advance(5_000);
    const message =
      'no answer within 5000 ms; for longer work, call heartbeat in the component, or increase timeoutSeconds of its registration';
    assert.deepEqual(await reply, { kind: 'failed', code: 'Timeout', message });
    assert.match(reason, /no answer within/);
  });

  it('are abandoned with the call', async () => {
    const call = new AbortController();
    const reply = invoke(({ signal }) => aborted(signal).then(() => ({ outcome: 'Done' })), call.signal);
    call.abort(new Error('leading no more'));
    await assert.rejects(reply, /leading no more/);
  });

  it('are not found under an unknown name', async () => {
    const client = clientOf(answering({ outcome: 'Done' }));
    const other = { ...registration, endpoint: { inProcess: 'other' } };
    const reply = await client.invoke(other, request, new AbortController().signal);
    assert.deepEqual([reply.kind, 'code' in reply && reply.code], ['notAccepted', 'Unreachable']);
  });
});

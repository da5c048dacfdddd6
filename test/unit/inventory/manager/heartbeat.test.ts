import assert from 'node:assert/strict';
import type { ReportAnswer } from '../../../../src/inventory/ports.ts';
import { credentialOf } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const minute = 60_000;

/** An asynchronous run of a component with a heartbeat timeout of a minute. */
async function longRun(maxRunSeconds: number) {
  const stage = await memoryStage([{ name: 'network', leaseSeconds: 60, maxRunSeconds }], {
    network: () => ({ kind: 'accepted', heartbeatTimeoutMs: undefined }),
  });
  const { clock, inventory, manager } = stage;
  const { ref } = inventory.create({ name: 'one' });
  await clock.advance(1);
  const [request] = manager.calls;
  assert.ok(request);
  const key = { entryUid: ref.uid, component: 'network' };
  const credentials = [credentialOf(request)];
  const startedAt = clock.monotonic();
  return {
    ...stage,
    credentials,
    record: () => inventory.record(key)?.record,
    report: (credential: string, body: object): Promise<ReportAnswer> => manager.report(request, body, credential),
    /** Sends a heartbeat every half minute until `ms` after the start, with the newest token. */
    async beatUntil(untilMs: number): Promise<void> {
      while (clock.monotonic() - startedAt < untilMs) {
        await clock.advance(30_000);
        const reportAnswer = await this.report(credentials.at(-1) ?? '', { heartbeat: {} });
        assert.equal(reportAnswer.status, 200, JSON.stringify(reportAnswer));
        const auth = reportAnswer.status === 200 ? reportAnswer.extension?.auth : undefined;
        if (auth) credentials.push(credentialOf({ auth }));
      }
    },
  };
}

const beat = { heartbeat: {} };

describe('the heartbeats of an asynchronous run', () => {
  it('return a new token after half of the lifetime, and both tokens may report until the next one', async () => {
    const run = await longRun(3600);
    const { credentials, clock } = run;
    await run.beatUntil(4.5 * minute);
    assert.deepEqual(credentials.length, 1);
    await run.beatUntil(5.5 * minute);
    const [first = '', second = ''] = credentials;
    assert.equal(credentials.length, 2);
    assert.equal(run.record()?.credentialId, second);
    assert.equal(run.record()?.previousCredential?.id, first);
    for (const credential of [first, second]) assert.equal((await run.report(credential, beat)).status, 200);
    assert.equal(credentials.length, 2);
    assert.equal((await run.report('forged', beat)).status, 403);
    await run.beatUntil(12 * minute);
    assert.equal(credentials.length, 3);
    assert.equal((await run.report(first, beat)).status, 403);
    assert.equal((await run.report(second, beat)).status, 200);
    assert.equal(run.manager.calls.length, 1);
    assert.equal((await run.report(credentials.at(-1) ?? '', { outcome: 'Done' })).status, 200);
    await clock.advance(1);
    const { phase, credentialId, previousCredential } = run.record() ?? {};
    assert.deepEqual([phase, credentialId, previousCredential], ['Idle', undefined, undefined]);
  });

  it('are accepted although the clock was set forward', async () => {
    const run = await longRun(3600);
    run.clock.setWall(run.clock.now() + 2 * 60 * minute);
    await run.beatUntil(minute);
    assert.equal((await run.report(run.credentials.at(-1) ?? '', { outcome: 'Done' })).status, 200);
  });

  it('do not extend the previous token beyond the maximum lifetime', async () => {
    const run = await longRun(3600);
    const { clock, credentials } = run;
    await run.beatUntil(5.5 * minute);
    const [first = ''] = credentials;
    const until = run.record()?.previousCredential?.expiresAtMs ?? 0;
    assert.ok(until - clock.now() <= 10 * minute, `for another ${until - clock.now()} ms`);
    // No further heartbeat replaces the token, but the deadline is far enough.
    assert.equal((await run.report(credentials.at(-1) ?? '', { heartbeat: { leaseSeconds: 1800 } })).status, 200);
    await clock.advance(until - clock.now() - 1);
    assert.equal((await run.report(first, { outcome: 'Nothing' })).status, 400);
    await clock.advance(1);
    assert.equal((await run.report(first, { outcome: 'Nothing' })).status, 403);
  });

  it('do not extend a run beyond its maximum duration, and return no token then', async () => {
    const run = await longRun(480);
    const { clock, credentials } = run;
    await run.beatUntil(7.5 * minute);
    assert.equal(credentials.length, 2);
    const reportAnswer = await run.report(credentials.at(-1) ?? '', { heartbeat: { leaseSeconds: 3600 } });
    assert.ok(
      reportAnswer.status === 200 && (reportAnswer.extension?.leaseSeconds ?? 0) <= 30,
      JSON.stringify(reportAnswer),
    );
    await clock.advance(0.5 * minute);
    const { phase, lastOutcome, credentialId } = run.record() ?? {};
    assert.deepEqual([phase, lastOutcome?.reason, credentialId], ['Idle', 'LeaseOver', undefined]);
    const late = await run.report(credentials.at(-1) ?? '', beat);
    assert.equal(late.status === 409 && late.code, 'RunOver');
  });
});

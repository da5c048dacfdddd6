import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { deadlineOf, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { ChartStage } from '../../support/chart-stage.ts';

const lease = 'drawbridge-access';
const leaseMs = 15_000;

describe('M23: of two replicas', function () {
  this.timeout(120_000);
  let stage: ChartStage;

  before(async () => {
    stage = await ChartStage.open();
    await stage.install('own');
  });
  after(() => stage?.close());

  /** Resolves with the time (epoch ms) at which the RoleBinding was seen to be gone. */
  const closed = async ({ metadata }: StoredRequest): Promise<number> => {
    const gone = async (): Promise<boolean> =>
      !(await stage.children(metadata.uid)).some(({ kind }) => kind === 'RoleBinding');
    await until(`the RoleBinding of ${metadata.name} to be gone`, gone, { timeoutMs: 60_000, everyMs: 20 });
    return Date.now();
  };

  it('both answer webhooks, and one grants', async () => {
    // All at once, so that the API server opens connections enough for both.
    const names = Array.from({ length: 8 }, (_, n) => `one-${n}`);
    await Promise.all(names.map((name) => stage.askUntilReady(stage.alice, podRequest(name))));
    const told = (event: string): Promise<number[]> =>
      Promise.all(stage.kubelet.pods.map(async (pod) => (await pod.log()).split(`"event":"${event}"`).length - 1));
    const admitted = await told('admission');
    assert.ok(admitted.length === 2 && admitted.every((count) => count > 0), `${admitted}`);
    assert.deepEqual((await told('grant')).toSorted(), [0, 8]);
    for (const pod of stage.kubelet.pods) {
      const answer = await fetch(`http://127.0.0.1:${pod.port('health')}/readyz`);
      assert.equal(answer.status, 200, await answer.text());
    }
  });

  it('the other closes access in time when the leader is told to stop', async () => {
    const leader = await stage.kubelet.leader(lease);
    const request = await stage.askUntilReady(stage.alice, podRequest('graceful', { duration: '8s' }));
    // So that the deadline falls into the handing over.
    await until('the deadline to be near', () => Date.now() > deadlineOf(request) - 300, {
      timeoutMs: 10_000,
      everyMs: 5,
    });
    process.kill(leader.pid, 'SIGTERM');
    const lateMs = (await closed(request)) - deadlineOf(request);
    console.log(`      closed ${lateMs} ms after the deadline`);
    assert.ok(lateMs <= 1000, `${lateMs} ms`);
    assert.notEqual((await stage.kubelet.leader(lease)).pid, leader.pid);
  });

  it('the other closes access within the lease and a second when the leader is killed', async () => {
    await stage.rolledOut();
    const leader = await stage.kubelet.leader(lease);
    const request = await stage.askUntilReady(stage.alice, podRequest('killed', { duration: '3s' }));
    process.kill(leader.pid, 'SIGKILL');
    const killedMs = Date.now();
    const closedMs = await closed(request);
    console.log(
      `      closed ${closedMs - killedMs} ms after the kill, ${closedMs - deadlineOf(request)} ms after the deadline`,
    );
    assert.ok(closedMs <= Math.max(deadlineOf(request), killedMs + leaseMs) + 1000);
  });
});

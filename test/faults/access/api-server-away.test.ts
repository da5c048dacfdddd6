import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import { until } from '../../../sandbox/wait.ts';
import { deadlineOf, execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { orphansIn } from '../../support/orphans.ts';
import { sharedPlane } from '../../support/plane.ts';

/** The duration of each outage: longer than the server's pauses between retries. The grants expire during the outage. */
const outageMs = 5000;

describe('an unavailable API server', () => {
  let stage: AccessStage;
  let proxy: FaultProxy;

  before(async function () {
    this.timeout(180_000);
    const plane = await sharedPlane();
    proxy = await plane.proxy();
    stage = await AccessStage.open({ apiserver: proxy.server });
  });

  afterEach(() => proxy.pass());

  after(async () => {
    await stage?.close();
    await proxy?.close();
  });

  const closed = async (request: StoredRequest): Promise<number> => {
    const gone = async (): Promise<boolean> =>
      !(await stage.children(request.metadata.uid)).some(({ kind }) => kind === 'RoleBinding');
    await until('the RoleBinding to be gone', gone, { timeoutMs: 10_000, everyMs: 20 });
    return Date.now();
  };

  const outages: [string, () => void][] = [
    ['refuses connections', () => proxy.refuse()],
    ['answers no call', () => proxy.stall()],
  ];

  for (const [what, begin] of outages) {
    it(`${what}: grants that expired meanwhile are closed within 2 s after it is back`, async function () {
      this.timeout(90_000);
      const id = what.split(' ')[0];
      const requests = await Promise.all([
        stage.createReady(stage.alice, podRequest(`out-${id}`, { duration: '8s' })),
        stage.createReady(stage.alice, execRequest(`out-${id}`, { duration: '8s' })),
      ]);
      begin();
      proxy.resetAll();
      await sleep(Math.max(outageMs, ...requests.map((request) => deadlineOf(request) + 1000 - Date.now())));
      for (const request of requests) assert.ok((await stage.children(request.metadata.uid)).length > 0);
      const backMs = Date.now();
      await proxy.pass();
      const closedMs = await Promise.all(requests.map(closed));
      console.log(`      closed ${closedMs.map((at) => at - backMs).join(' and ')} ms after the return`);
      for (const at of closedMs) assert.ok(at - backMs <= 2000, `${at - backMs} ms`);
      for (const request of requests) await stage.gone(request);
      assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
      assert.ok(stage.server.running);
    });
  }

  it('is back: requests and revocations from the outage are handled', async function () {
    this.timeout(180_000);
    const given = await stage.createReady(stage.alice, podRequest('given-back', { duration: '10m' }));
    const failures = async (): Promise<number> => (await stage.server.log()).split('list-watch keeps failing').length;
    const before = await failures();
    proxy.refuse();
    proxy.resetAll();
    // The webhooks still answer, and the server has the templates in its cache.
    const asked = await stage.createOk(stage.alice, podRequest('asked', { duration: '10m' }));
    await stage.alice.call('DELETE', stage.urlOf(given.kind, given.metadata.name));
    // Watches that lived for less than 5 s go on counting the failures of the outage before, and
    // log each fifteenth: 75 s.
    await until('the server to have tried in vain', async () => (await failures()) > before, { timeoutMs: 90_000 });
    await proxy.pass();
    await stage.gone(given);
    await stage.ready(asked);
    await stage.kubectl('delete', 'podaccessrequests', '--all', '--timeout=60s');
    assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
  });
});

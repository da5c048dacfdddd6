import assert from 'node:assert/strict';
import {
  type ComponentServer,
  serveComponent,
} from '../../../../examples/inventory/components/sdk/component-server.ts';
import type { Component } from '../../../../examples/inventory/components/sdk/contract.ts';
import { httpTransports } from '../../../../examples/inventory/components/sdk/http-transports.ts';
import { until } from '../../../../sandbox/wait.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { aborted } from '../../../../src/kit/promises.ts';
import { ConformanceWorld, component } from '../../../support/inventory/conformance-world.ts';
import { post } from '../../../support/inventory/plain-client.ts';

const clock = systemClock;
const waiting = { timeoutMs: 30_000, everyMs: 5 };

describe('the server of a component', () => {
  const world = new ConformanceWorld();
  let options: Parameters<typeof serveComponent>[0];
  let server: ComponentServer;
  let url: string;
  let reconcile: Component['reconcile'];
  let knows: (token: string) => Promise<boolean>;
  let lines: string[];
  let laterMs: number;

  beforeEach(async () => {
    await world.start();
    world.begin('done');
    reconcile = () => Promise.resolve({ outcome: 'Done' });
    knows = () => Promise.resolve(true);
    lines = [];
    laterMs = 0;
    const addresses = { apiUrl: world.apiUrl, apiCa: undefined, callbackUrl: world.callbackUrl };
    options = {
      component: { name: component, reconcile: (run) => reconcile(run) },
      callers: { isServer: (token) => knows(token) },
      addresses,
      transports: httpTransports({ ...addresses, callbackCa: undefined }),
      tls: undefined,
      host: '127.0.0.1',
      port: 0,
      maxRuns: 2,
      clock: { ...clock, monotonic: () => clock.monotonic() + laterMs },
      log: (line) => lines.push(line),
    };
    server = await serveComponent(options);
    url = `http://127.0.0.1:${server.port}`;
  });
  afterEach(async () => {
    await server.close();
    await world.close();
  });

  it('does not start if runs would send tokens in clear text', async () => {
    const addresses = { ...options.addresses, callbackUrl: 'http://drawbridge.example.org' };
    await assert.rejects(serveComponent({ ...options, addresses }), { code: 'InsecureAddress' });
  });

  it('rejects other paths and methods', async () => {
    assert.equal((await fetch(url)).status, 404);
    assert.equal((await fetch(`${url}/v1/reconcile`)).status, 405);
    const headers = { authorization: 'Bearer x', 'content-type': 'text/plain' };
    assert.equal((await fetch(`${url}/v1/reconcile`, { method: 'POST', headers, body: '{}' })).status, 415);
  });

  it('answers 503 while it cannot authenticate callers, and tells the cause only to its log', async () => {
    knows = () => Promise.reject(new Error('User "x" cannot create tokenreviews at 10.0.0.1'));
    const answer = await fetch(`${url}/v1/reconcile`, { method: 'POST', headers: { authorization: 'Bearer x' } });
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
    const { code, message } = (await answer.json()) as { code: string; message: string };
    assert.equal(code, 'Unavailable');
    assert.doesNotMatch(message, /tokenreviews|10\.0\.0\.1|"x"/);
    assert.deepEqual(lines, ['rejected a call with 503 Unavailable: User "x" cannot create tokenreviews at 10.0.0.1']);
  });

  it('logs rejected calls at most once in 10 s for each code', async () => {
    knows = () => Promise.resolve(false);
    const call = () => fetch(`${url}/v1/reconcile`, { method: 'POST' });
    for (let i = 0; i < 3; i++) await call();
    await fetch(url);
    const codes = () => lines.map((line) => /with (\d+ \w+)/.exec(line)?.[1]);
    assert.deepEqual(codes(), ['401 Unauthorized', '404 NotFound']);
    laterMs = 10_001;
    await call();
    assert.deepEqual(codes(), ['401 Unauthorized', '404 NotFound', '401 Unauthorized']);
  });

  /** The number of callers that are asked about, and their answer, which the test gives. */
  const holdCallers = () => {
    const held = { asked: 0, ...Promise.withResolvers<boolean>() };
    knows = () => {
      held.asked += 1;
      return held.promise;
    };
    return held;
  };

  it('enforces its limit of runs for concurrent calls', async () => {
    const held = holdCallers();
    let running = 0;
    reconcile = async ({ signal }) => {
      running += 1;
      await aborted(signal);
      return { outcome: 'Done' };
    };
    const statuses: number[] = [];
    const asking = [1, 2, 3].map(() =>
      post({ url }, world.request(), 'x').then(
        ({ status }) => void statuses.push(status),
        () => undefined,
      ),
    );
    await until('three callers', () => held.asked === 3, waiting);
    held.resolve(true);
    await until('all of them', () => running + statuses.length === 3, waiting);
    assert.deepEqual([running, statuses], [2, [429]]);
    await server.close();
    await Promise.all(asking);
  });

  it('authenticates at most 64 callers concurrently, and answers 429 to more', async () => {
    const held = holdCallers();
    const call = () =>
      fetch(`${url}/v1/reconcile`, { method: 'POST', headers: { authorization: 'Bearer x' } }).then((it) => it.status);
    const strangers = Array.from({ length: 64 }, call);
    await until('64 of them', () => held.asked === 64, waiting);
    assert.deepEqual([await call(), held.asked], [429, 64]);
    held.resolve(false);
    assert.deepEqual(new Set(await Promise.all(strangers)), new Set([401]));
    assert.equal(await call(), 401);
  });

  it('aborts a run whose caller disconnected, unless it answered 202', async () => {
    const reasons: string[] = [];
    reconcile = async ({ signal }) => {
      await aborted(signal);
      reasons.push(String(signal.reason));
      return { outcome: 'Done' };
    };
    const call = fetch(`${url}/v1/reconcile`, {
      method: 'POST',
      headers: { authorization: 'Bearer x', 'content-type': 'application/json' },
      body: JSON.stringify(world.request()),
      signal: AbortSignal.timeout(100),
    });
    await assert.rejects(call);
    await until('the abort', () => reasons.length === 1, waiting);
    assert.match(reasons.join(), /the caller closed the connection/);
  });

  it('answers Retry for a thrown error, without its stack', async () => {
    reconcile = () => Promise.reject(new Error('the cloud is away', { cause: new Error('no route') }));
    const request = world.request();
    assert.deepEqual((await post({ url }, request, 'x')).body, {
      run: request.run.id,
      outcome: 'Retry',
      message: 'the cloud is away: no route',
    });
  });

  for (const [status, why] of [
    [409, 'is over'],
    [403, 'is not ours any more'],
  ] as const) {
    it(`abandons a run when its report is rejected because it ${why}`, async () => {
      let ended: unknown;
      reconcile = async (run) => {
        await run.heartbeat();
        world.refusals.push(status);
        await run.heartbeat().catch((error: unknown) => {
          ended = error;
        });
        return { outcome: 'Done' };
      };
      assert.equal((await post({ url }, world.request(), 'x')).status, 202);
      await until('the end', () => ended !== undefined, waiting);
      assert.match(String(ended), /the server rejected the report/);
      assert.deepEqual(world.reports, []);
    });
  }

  it('stops delivery if no report is accepted before the deadline', async () => {
    let reason = '';
    reconcile = async (run) => {
      run.signal.addEventListener('abort', () => {
        reason = String(run.signal.reason);
      });
      await run.heartbeat(2);
      world.refusals.push(503, 503, 503, 503, 503);
      return { outcome: 'Done' };
    };
    assert.equal((await post({ url }, world.request(), 'x')).status, 202);
    await until('the end', () => reason !== '', waiting);
    assert.match(reason, /the server accepted no report before the deadline/);
    assert.deepEqual(world.reports, []);
  });
});

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { until } from '../../../sandbox/wait.ts';
import { type Clock, systemClock as clock } from '../../../src/kit/clock.ts';
import { aborted } from '../../../src/kit/promises.ts';
import { Health } from '../../../src/observe/health.ts';
import { type HealthServer, startHealthServer } from '../../../src/observe/health-server.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

/** The built thread, because threads do not load TypeScript. */
const program = new URL('../../../dist/health-thread.mjs', import.meta.url);
const local = { host: '127.0.0.1', port: 0 };

describe('the health server', () => {
  const servers: HealthServer[] = [];
  const start = async (health: Health, timers: Clock = clock): Promise<HealthServer> => {
    const server = await startHealthServer({ ...local, health, clock: timers, program });
    servers.push(server);
    return server;
  };
  const probe = async ({ port }: HealthServer, path: string): Promise<{ status: number; text: string }> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, text: await answer.text() };
  };
  const untilStatus = (server: HealthServer, path: string, status: number): Promise<true> =>
    until(`${path} to answer ${status}`, async () => (await probe(server, path)).status === status, {
      timeoutMs: 30_000,
      everyMs: 10,
    });

  before(() => {
    if (!existsSync(program)) throw new Error(`${fileURLToPath(program)} is missing: run npm run build`);
  });
  afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

  it('answers from its start, and shows each change of readiness', async () => {
    const health = new Health();
    let problem: string | undefined = 'not synced';
    health.addCheck('stores', () => problem);
    const server = await start(health);
    assert.deepEqual(await probe(server, '/readyz'), {
      status: 503,
      text: '[+] event-loop\n[-] stores: not synced\nnot ok\n',
    });
    problem = undefined;
    await untilStatus(server, '/readyz', 200);
    problem = 'stale';
    await untilStatus(server, '/readyz', 503);
    assert.deepEqual(await probe(server, '/livez'), { status: 200, text: '[+] event-loop\nok\n' });
  });

  it('asks for the readiness of the moment if the last report is old', async () => {
    const health = new Health();
    let problem: string | undefined = 'not synced';
    health.addCheck('stores', () => problem);
    // This clock stands still, so that only an answer shows that the event loop is not blocked.
    const server = await start(health, new SimulatedClock());
    problem = undefined;
    await untilStatus(server, '/readyz', 200);
    problem = 'stale';
    await untilStatus(server, '/readyz', 503);
    assert.equal((await probe(server, '/readyz')).text, '[+] event-loop\n[-] stores: stale\nnot ok\n');
  });

  it('rejects if the port is taken', async () => {
    const { port } = await start(new Health());
    await assert.rejects(startHealthServer({ ...local, port, health: new Health(), clock, program }), {
      code: 'PortUnavailable',
      message: new RegExp(`^cannot listen on 127\\.0\\.0\\.1, port ${port}: .*EADDRINUSE`),
    });
  });

  it('rejects if the thread cannot start', async () => {
    const missing = new URL('none.mjs', program);
    await assert.rejects(startHealthServer({ ...local, health: new Health(), clock, program: missing }), {
      code: 'HealthThreadEnded',
      message: /none\.mjs/,
    });
  });

  it('reports that its thread ended', async () => {
    const ending = `import { parentPort } from 'node:worker_threads';
      parentPort.postMessage({ port: 1 });
      parentPort.on('message', () => { throw new Error('a bug'); });
      setInterval(() => parentPort.postMessage(undefined), 10);`;
    const options = { ...local, health: new Health(), clock, program: new URL(`data:text/javascript,${ending}`) };
    const server = await startHealthServer(options);
    servers.push(server);
    await aborted(server.failed);
    const { code, message } = server.failed.reason;
    assert.equal(code, 'HealthThreadEnded');
    assert.match(message, /^the thread that answers probes ended: a bug; /);
  });

  it('closes its port and reports nothing then', async () => {
    const server = await start(new Health());
    await server.close();
    await assert.rejects(probe(server, '/livez'));
    assert.equal(server.failed.aborted, false);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { systemClock } from '../../../src/kit/clock.ts';
import type { Listening } from '../../../src/kit/listen.ts';
import { Health, livenessAt } from '../../../src/observe/health.ts';
import { startMetricsServer, startProbeServer } from '../../../src/observe/http.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';

const read = async (server: Listening, path: string): Promise<{ status: number; text: string }> => {
  const [answer] = await once(get({ host: '127.0.0.1', port: server.port, path }), 'response');
  let text = '';
  for await (const chunk of answer) text += chunk;
  return { status: answer.statusCode, text };
};

describe('the probe and metrics servers', () => {
  const servers: Listening[] = [];
  const local = { host: '127.0.0.1', port: 0 };
  const healthy = { readiness: () => livenessAt(0), liveness: () => livenessAt(0) };
  afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

  it('list each check, with 503 while one of them fails', async () => {
    const health = new Health();
    const server = await startProbeServer({ ...local, ...healthy, readiness: () => health.readiness() });
    servers.push(server);
    let problem: string | undefined = 'not synced';
    health.addCheck('stores', () => problem);
    health.addCheck('certificate', () => undefined);
    assert.deepEqual(await read(server, '/readyz?verbose'), {
      status: 503,
      text: '[-] stores: not synced\n[+] certificate\nnot ok\n',
    });
    assert.equal((await read(server, '/healthz')).status, 200);
    problem = undefined;
    assert.equal((await read(server, '/readyz')).status, 200);
    assert.equal((await read(server, '/')).status, 404);
  });

  it('do without a check that the caller excludes, as in Kubernetes', async () => {
    const health = new Health();
    const server = await startProbeServer({ ...local, ...healthy, readiness: () => health.readiness() });
    servers.push(server);
    health.addCheck('policies', () => 'missing');
    health.addCheck('stores', () => undefined);
    assert.deepEqual(await read(server, '/readyz?exclude=policies&verbose'), { status: 200, text: '[+] stores\nok\n' });
    assert.equal((await read(server, '/readyz?exclude=stores')).status, 503);
    assert.equal((await read(server, '/readyz')).status, 503);
  });

  it('show a warning, with 200', async () => {
    const health = new Health();
    const server = await startProbeServer({ ...local, ...healthy, readiness: () => health.readiness() });
    servers.push(server);
    health.addCheck('stores', () => ({ warning: 'pods: refused' }));
    assert.deepEqual(await read(server, '/readyz'), { status: 200, text: '[!] stores: pods: refused\nok\n' });
  });

  it('expose the metrics', async () => {
    const metrics = createMetrics();
    metrics.counter({ name: 'test_total', help: 'A test.' }).inc();
    const server = await startMetricsServer({ ...local, metrics, clock: systemClock });
    servers.push(server);
    const { status, text } = await read(server, '/metrics');
    assert.equal(status, 200);
    assert.match(text, /^test_total 1$/m);
  });

  it('answer a probe while other clients use every connection, from any number of addresses', async () => {
    const server = await startProbeServer({ ...local, ...healthy });
    servers.push(server);
    const sockets: Socket[] = [];
    try {
      for (let index = 0; index < 256; index++) {
        const socket = connect({ host: '127.0.0.1', port: server.port, localAddress: `127.0.0.${2 + (index % 8)}` });
        socket.on('error', () => {});
        sockets.push(socket);
        await once(socket, 'connect');
      }
      for (let round = 0; round < 30; round++) assert.equal((await read(server, '/healthz')).status, 200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it('answer one call for each connection', async () => {
    const server = await startProbeServer({ ...local, ...healthy });
    servers.push(server);
    const socket = connect({ host: '127.0.0.1', port: server.port });
    socket.on('error', () => {});
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await once(socket, 'close');
    assert.ok(text.split('HTTP/1.1 200').length <= 2, 'one answer at most');
  });

  it('share one rendering of the metrics among concurrent scrapes', async () => {
    const metrics = createMetrics();
    let exposed = 0;
    const counting = { ...metrics, expose: () => metrics.expose().finally(() => exposed++) };
    const server = await startMetricsServer({ ...local, metrics: counting, clock: systemClock });
    servers.push(server);
    const answers = await Promise.all(Array.from({ length: 40 }, () => read(server, '/metrics')));
    assert.ok(answers.every(({ status }) => status === 200));
    assert.ok(exposed < 10, `${exposed} times`);
  });

  it('reject if the port is taken', async () => {
    const server = await startProbeServer({ ...local, ...healthy });
    servers.push(server);
    await assert.rejects(startProbeServer({ ...local, ...healthy, port: server.port }), { code: 'PortUnavailable' });
  });
});

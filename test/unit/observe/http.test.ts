import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import type { Listening } from '../../../src/kit/listen.ts';
import { Health } from '../../../src/observe/health.ts';
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
  afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

  it('tell each check and 503 while one of them fails', async () => {
    const health = new Health();
    const server = await startProbeServer({ ...local, health });
    servers.push(server);
    let problem: string | undefined = 'not synced';
    health.ready('stores', () => problem);
    health.ready('certificate', () => undefined);
    assert.deepEqual(await read(server, '/readyz?verbose'), {
      status: 503,
      text: '[-] stores: not synced\n[+] certificate\nnot ok\n',
    });
    assert.equal((await read(server, '/healthz')).status, 200);
    problem = undefined;
    assert.equal((await read(server, '/readyz')).status, 200);
    assert.equal((await read(server, '/')).status, 404);
  });

  it('expose the metrics', async () => {
    const metrics = createMetrics();
    metrics.counter({ name: 'test_total', help: 'A test.' }).inc();
    const server = await startMetricsServer({ ...local, metrics });
    servers.push(server);
    const { status, text } = await read(server, '/metrics');
    assert.equal(status, 200);
    assert.match(text, /^test_total 1$/m);
  });

  it('reject when the port is taken', async () => {
    const server = await startProbeServer({ ...local, health: new Health() });
    servers.push(server);
    await assert.rejects(startProbeServer({ host: '127.0.0.1', port: server.port, health: new Health() }), {
      code: 'PortUnavailable',
    });
  });
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { until } from '../../../sandbox/wait.ts';
import { systemClock as clock } from '../../../src/kit/clock.ts';
import { Health } from '../../../src/observe/health.ts';
import { type HealthServer, startHealthServer } from '../../../src/observe/health-server.ts';

const program = new URL('../../../dist/health-thread.mjs', import.meta.url);

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Probes with a process of its own, and blocks the event loop of this one meanwhile. Sends the probe after `delayMs`. */
const probeBlocked = ({ port }: HealthServer, path: string, delayMs: number): Answer => {
  const script = `setTimeout(async () => {
    const answer = await fetch('http://127.0.0.1:${port}${path}');
    console.log(JSON.stringify({ status: answer.status, text: await answer.text() }));
  }, ${delayMs});`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', env: {} });
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout) as Answer;
};

describe('the health server', () => {
  let server: HealthServer;
  const statusOf = async (path: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${server.port}${path}`)).status;
  const untilOk = (path: string): Promise<true> =>
    until(`${path} to answer 200`, async () => (await statusOf(path)) === 200, { timeoutMs: 30_000, everyMs: 10 });

  before(async () => {
    server = await startHealthServer({ host: '127.0.0.1', port: 0, health: new Health(), clock, program });
  });
  after(() => server.close());

  it('answers while the event loop is blocked: /readyz fails after 1 s and /livez after 5 s, until it runs again', async function () {
    this.timeout(60_000);
    const readyz = probeBlocked(server, '/readyz', 1_100);
    assert.equal(readyz.status, 503);
    assert.match(readyz.text, /^\[-\] event-loop: blocked for \d+\.\d s; at most 1 s\nnot ok\n$/);
    await untilOk('/readyz');
    assert.equal(probeBlocked(server, '/livez', 1_100).status, 200);
    await untilOk('/readyz');
    const livez = probeBlocked(server, '/livez', 5_100);
    assert.equal(livez.status, 503);
    assert.match(livez.text, /^\[-\] event-loop: blocked for \d+\.\d s; at most 5 s\nnot ok\n$/);
    await untilOk('/livez');
  });
});

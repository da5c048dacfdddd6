import assert from 'node:assert/strict';
import { pods } from '../../../src/api/resources.ts';
import { storesProblem } from '../../../src/features/feature.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import type { Projected, Store } from '../../../src/kube/store.ts';
import { advanceIo, until } from '../../support/io.ts';
import { type Answer, ScriptedApiserver } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('a silent watch whose API server is too busy for a new one', () => {
  let clock: SimulatedClock;
  let server: ScriptedApiserver;
  let cluster: OpenCluster;
  let store: Store<Projected>;
  let lines: string[];
  let refusals: string[];
  /** Answers new watches; undefined if the server accepts them. */
  let reject: ((answer: Answer) => void) | undefined;

  beforeEach(async () => {
    lines = [];
    refusals = [];
    reject = undefined;
    clock = new SimulatedClock();
    server = await ScriptedApiserver.start(({ method, watch }, answer) => {
      if (method === 'POST') answer.json(201, { status: { incomplete: true } });
      else if (!watch) answer.list('10', []);
      else if (reject) reject(answer);
      else answer.open();
    });
    const line = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
    cluster = openCluster(staticCredentials({ server: server.url }), {
      clock,
      random: () => 0.5,
      log: { debug: () => {}, info: line('info'), warn: line('warn'), error: line('error') },
      watches: {
        probe: true,
        silenceMs: 75_000,
        onRefusal: ({ plural }, code) => void refusals.push(`${plural} ${code}`),
      },
    });
    store = cluster.watch({ resource: pods, project: () => undefined }).store;
    await store.whenSynced();
    await until(() => server.watches.length === 1);
    await advanceIo(clock, 10, 10);
  });
  afterEach(async () => {
    const closing = cluster.close();
    await server.close();
    await closing;
  });

  const current = (): Answer | undefined =>
    server.answers.find((answer, index) => server.requests[index]?.watch && !answer.closed);

  for (const [code, headers] of [
    [429, { 'retry-after': '1' }],
    [429, { 'retry-after': '86400' }],
    [429, { 'retry-after': '0' }],
    [503, {}],
  ] as const) {
    const what = `${code} ${JSON.stringify(headers)}`;
    it(`makes the store stale within 135 s although reviews are answered, counted and logged once, after ${what}`, async () => {
      reject = (answer) => answer.status(code, 'TooManyRequests', headers);
      await advanceIo(clock, 120_000, 1_000);
      assert.equal(storesProblem([store]), undefined);
      await advanceIo(clock, 15_000, 1_000);
      assert.equal(storesProblem([store]), 'no data from the API server for over 60 s: pods');
      assert.deepEqual(lines, ['warn the API server rejected a new connection for a watch; the open one stays']);
      assert.ok(refusals.length > 0 && refusals.every((refusal) => refusal === `pods ${code}`), refusals.join());
      assert.equal(refusals.length, server.watches.length - 1);
      assert.ok(server.watches.length <= 70, `${server.watches.length} watches`);
    });
  }

  it('is fresh as soon as the server accepts a new one, and then logs the next time', async () => {
    reject = (answer) => answer.status(503);
    await advanceIo(clock, 140_000, 1_000);
    reject = undefined;
    await advanceIo(clock, 6_000, 1_000);
    assert.equal(storesProblem([store]), undefined);
    reject = (answer) => answer.status(503);
    await advanceIo(clock, 90_000, 1_000);
    assert.equal(lines.length, 2);
  });

  it('is fresh as soon as it receives data, and logs nothing more while the server stays busy', async () => {
    reject = (answer) => answer.status(503);
    for (let version = 11; version < 14; version++) {
      await advanceIo(clock, 140_000, 1_000);
      assert.match(String(storesProblem([store])), /over 60 s/);
      current()?.bookmark(String(version));
      await advanceIo(clock, 1_000, 1_000);
      assert.equal(storesProblem([store]), undefined);
    }
    assert.equal(lines.length, 1);
  });
});

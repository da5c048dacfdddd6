import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { keyOf } from '../../../src/api/object.ts';
import { pods } from '../../../src/api/resources.ts';
import { storesProblem } from '../../../src/features/feature.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import type { Projected, Store } from '../../../src/kube/store.ts';
import { advanceIo, until } from '../../support/io.ts';
import { pluck } from '../../support/pluck.ts';
import { type Answer, pod, ScriptedApiserver, type ScriptedRequest } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const noLonger =
  'warn list-watch is no longer allowed; the store is out of date; check the credentials and their permission to list and watch';

describe('watches that the API server refuses', () => {
  let clock: SimulatedClock;
  let server: ScriptedApiserver;
  let cluster: OpenCluster;
  let store: Store<Projected>;
  let lines: string[];
  let refusals: string[];
  /** The code of a refusal; 0 if the server allows everything. */
  let refused: number;
  /** Whether the server has a rule for the watch. Default: what `refused` says. */
  let isListed: () => boolean;

  const script = ({ method, watch }: ScriptedRequest, answer: Answer): void => {
    const rule = { verbs: ['list', 'watch'], apiGroups: [''], resources: ['pods'] };
    const status = { resourceRules: isListed() ? [rule] : [], incomplete: false };
    if (refused === 401 || (refused > 0 && method === 'GET')) answer.status(refused);
    else if (method === 'POST') answer.json(201, { status });
    else if (watch) answer.open();
    else answer.list('10', [pod('a', '5')]);
  };

  beforeEach(async () => {
    refused = 0;
    isListed = () => refused === 0;
    lines = [];
    refusals = [];
    clock = new SimulatedClock();
    server = await ScriptedApiserver.start(script);
    const line = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
    cluster = openCluster(staticCredentials({ server: server.url }), {
      clock,
      random: () => 0.5,
      log: { debug: () => {}, info: line('info'), warn: line('warn'), error: line('error') },
      watches: { probe: true, onRefusal: ({ plural }, code) => void refusals.push(`${plural} ${code}`) },
    });
    store = cluster.watch({
      resource: pods,
      project: ({ metadata }) => ({ key: keyOf(metadata), uid: metadata.uid ?? '', resourceVersion: '' }),
    }).store;
  });
  afterEach(() => Promise.all([cluster.close(), server.close()]));

  const readiness = (): string => {
    const found = storesProblem([store]);
    return typeof found === 'object' ? `warning: ${found.warning}` : (found ?? '');
  };

  const synced = async (): Promise<void> => {
    await store.whenSynced();
    await until(() => server.watches.length === 1);
    await advanceIo(clock, 10, 10);
  };

  /** Syncs, and refuses everything for this time. */
  const refuse = async (code: number, forMs: number): Promise<void> => {
    await synced();
    refused = code;
    await advanceIo(clock, forMs, 250);
  };

  for (const code of [401, 403]) {
    it(`are reported within 10 s after ${code}, once in the log and counted each time`, async () => {
      const changes: (number | undefined)[] = [];
      await synced();
      store.onRefusal(() => changes.push(store.failing?.refused));
      await advanceIo(clock, 20_000, 250);
      assert.equal(server.watches.length, 1, 'no second watch while it is allowed');
      refused = code;
      await advanceIo(clock, 10_000, 250);
      assert.equal(store.failing?.refused, code);
      assert.match(readiness(), /^warning: the API server no longer allows list and watch of: pods; grant/);
      assert.deepEqual(pluck([...store.list()], 'key'), ['default/a']);
      await advanceIo(clock, 60_000, 250);
      assert.deepEqual(lines, [noLonger]);
      assert.ok(refusals.length > 10 && refusals.every((refusal) => refusal === `pods ${code}`), refusals.join());
      assert.deepEqual(changes, [code]);
    });

    it(`resume within 5 s after ${code} has ended, from the version that they have seen`, async () => {
      await refuse(code, 60_000);
      refused = 0;
      await advanceIo(clock, 5_000, 250);
      assert.equal(store.failing, undefined);
      assert.equal(storesProblem([store]), undefined);
      assert.equal(server.lists.length, 1);
      assert.equal(server.watches.at(-1)?.query.get('resourceVersion'), '10');
      assert.equal(lines.at(-1), 'info list-watch is allowed again');
    });
  }

  it('make the process unready once they have lasted 10 s', async () => {
    await synced();
    refused = 403;
    while (store.failing?.refused === undefined) await advanceIo(clock, 10, 10);
    await advanceIo(clock, 9_980, 250);
    assert.match(readiness(), /^warning: /);
    await advanceIo(clock, 20, 10);
    assert.match(readiness(), /^the API server no longer allows/);
  });

  for (const lastsMs of [1_000, 5_000]) {
    it(`never make the process unready if they last ${lastsMs / 1000} s, as while RBAC objects are created anew`, async () => {
      await synced();
      refused = 403;
      while (store.failing === undefined) await advanceIo(clock, 10, 10);
      await advanceIo(clock, lastsMs, 250);
      assert.match(readiness(), /^warning: /);
      refused = 0;
      for (let leftMs = 5_000; leftMs > 0; leftMs -= 250) {
        assert.match(readiness(), /^(warning: .*)?$/);
        await advanceIo(clock, 250, 250);
      }
      assert.equal(readiness(), '');
    });
  }

  const refusal = { type: 'ERROR', object: { kind: 'Status', code: 403, reason: 'Forbidden', message: 'no' } };

  it('stay refused, with one line in the log, if the server accepts every third one for a moment', async () => {
    const changes: (number | undefined)[] = [];
    await synced();
    store.onRefusal(() => changes.push(store.failing?.refused));
    isListed = () => false;
    let tries = 0;
    server.follow((request, answer) => {
      if (!request.watch) return script(request, answer);
      if (++tries % 3 !== 0) return answer.status(403);
      answer.open();
      answer.event(refusal.type, refusal.object);
    });
    await advanceIo(clock, 30_000, 50);
    assert.deepEqual(changes, [403]);
    assert.deepEqual(lines, [noLonger]);
    assert.ok(server.watches.length <= 30, `${server.watches.length} watches`);
  });

  it('clear with the next list if the server has forgotten their version meanwhile', async () => {
    await refuse(403, 20_000);
    refused = 0;
    let isFirst = true;
    server.follow((request, answer) => {
      if (!request.watch || !isFirst) return script(request, answer);
      isFirst = false;
      answer.status(410, 'Expired');
    });
    await advanceIo(clock, 3_000, 250);
    assert.equal(store.failing, undefined);
    assert.equal(server.lists.length, 2);
  });

  it('stay refused while the server cannot be reached', async () => {
    await refuse(403, 12_000);
    server.follow((_request, answer) => answer.reset());
    await advanceIo(clock, 12_000, 250);
    assert.equal(store.failing?.refused, 403);
  });

  it('are not reported for a single refusal, as of a token that was just replaced', async () => {
    await synced();
    isListed = () => false;
    server.follow((request, answer) => {
      if (!request.watch) return script(request, answer);
      server.follow(script);
      answer.status(401);
    });
    await advanceIo(clock, 12_000, 250);
    assert.equal(store.failing, undefined);
    assert.deepEqual([refusals, lines], [['pods 401'], []]);
  });

  it('are not reported if the server has never allowed them: its owner may still grant the permission', async () => {
    await until(() => server.lists.length === 1);
    const other = new SimulatedClock();
    refused = 403;
    const late = openCluster(staticCredentials({ server: server.url }), { clock: other });
    const handle = late.watch({ resource: pods, project: () => undefined });
    await advanceIo(other, 20_000, 250);
    assert.match(handle.store.failing?.reason ?? '', /403/);
    assert.equal(handle.store.failing?.refused, undefined);
    await late.close();
  });

  it('keep a watch that the server accepts although no rule names it, and do not check it again', async () => {
    await synced();
    isListed = () => false;
    await advanceIo(clock, 60_000, 250);
    assert.equal(store.failing, undefined);
    assert.equal(server.watches.length, 2);
  });

  it('are noticed although the watch still delivers events', async () => {
    await synced();
    const watch = server.answers.find((_, index) => server.requests[index]?.watch);
    refused = 403;
    for (let version = 11; version < 51; version++) {
      if (!watch?.closed) watch?.bookmark(String(version));
      await advanceIo(clock, 250, 250);
    }
    assert.equal(store.failing?.refused, 403);
    assert.equal(watch?.closed, true, 'the old connection delivers nothing any more');
  });
});

describe('a cluster at rest', () => {
  it('costs one watch call in five minutes for each watch if the server sends bookmarks', async () => {
    const clock = new SimulatedClock();
    let endsAtMs = 0;
    const server = await ScriptedApiserver.start(({ method, watch, query }, answer) => {
      if (method === 'POST') return answer.json(201, { status: { incomplete: true } });
      if (!watch) return answer.list('10', []);
      answer.open();
      endsAtMs = clock.monotonic() + Number(query.get('timeoutSeconds')) * 1000;
    });
    const watches = { probe: true };
    const cluster = openCluster(staticCredentials({ server: server.url }), { clock, random: () => 0.5, watches });
    const { store } = cluster.watch({ resource: pods, project: () => undefined });
    await store.whenSynced();
    for (let second = 1; second <= 900; second++) {
      const open = server.answers.filter((answer, index) => server.requests[index]?.watch && !answer.closed);
      if (second % 61 === 0) for (const answer of open) answer.bookmark(String(10 + second));
      if (clock.monotonic() >= endsAtMs) for (const answer of open) answer.end();
      await advanceIo(clock, 1_000, 1_000);
      assert.ok(store.ageMs <= 10_000, `age ${store.ageMs} ms`);
    }
    assert.ok(server.watches.length <= 4, `${server.watches.length} watches in 15 minutes`);
    assert.equal(server.lists.length, 1);
    await Promise.all([cluster.close(), server.close()]);
  });

  it('probes the connection of a silent watch by TCP within 8 s, so that one without another end breaks within 20 s', async () => {
    const server = await ScriptedApiserver.start(({ watch }, answer) =>
      watch ? answer.open() : answer.list('10', []),
    );
    const cluster = openCluster(staticCredentials({ server: server.url }), { clock: new SimulatedClock() });
    const { store } = cluster.watch({ resource: pods, project: () => undefined });
    await store.whenSynced();
    await until(() => server.watches.length === 1);
    const port = Number(new URL(server.url).port).toString(16).toUpperCase().padStart(4, '0');
    // State `01` is an established connection; one that has ended keeps a timer of another kind for a minute.
    const timers = (): string[] =>
      readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, , remote = '', state]) => remote.endsWith(`:${port}`) && state === '01')
        .map(([, , , , , timer = '']) => timer);
    // `02` is the timer of keep-alive probes; the rest is its time in hundredths of a second.
    await until(() => timers().length > 0 && timers().every((timer) => timer.startsWith('02:')));
    const hundredths = timers().map((timer) => Number.parseInt(timer.slice(3), 16));
    assert.ok(Math.max(...hundredths) <= 800, hundredths.join());
    await Promise.all([cluster.close(), server.close()]);
  });
});

import assert from 'node:assert/strict';
import { type KubeObject, keyOf } from '../../../src/api/object.ts';
import { pods } from '../../../src/api/resources.ts';
import { storesProblem } from '../../../src/features/feature.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import type { Projected, Store, StoreEvent, StoreHandle, StoreSpec } from '../../../src/kube/store.ts';
import { advanceIo, until } from '../../support/io.ts';
import { pluck } from '../../support/pluck.ts';
import { type Answer, pod, type Script, ScriptedApiserver } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

interface PodView extends Projected {
  readonly phase: string;
}

const view = (object: KubeObject): PodView => ({
  key: keyOf(object.metadata),
  uid: object.metadata.uid ?? '',
  resourceVersion: object.metadata.resourceVersion ?? '',
  phase: typeof object['phase'] === 'string' ? object['phase'] : '',
});

describe('list-watch', () => {
  let clock: SimulatedClock;
  let server: ScriptedApiserver;
  let cluster: OpenCluster;
  let handle: StoreHandle<PodView> | undefined;

  async function start(script: Script, spec: Partial<StoreSpec<PodView>> = {}): Promise<Watched> {
    clock = new SimulatedClock();
    server = await ScriptedApiserver.start(script);
    cluster = openCluster(staticCredentials({ server: server.url }), { clock, random: () => 0.5 });
    handle = cluster.watch({ resource: pods, project: view, ...spec });
    const { store } = handle;
    const events: StoreEvent<PodView>[] = [];
    store.subscribe((event) => events.push(event));
    return { store, events, changes: () => events.map(describeEvent) };
  }

  /** Starts with a server that lists these pods, and watches without events. */
  async function startQuiet(...items: readonly object[]): Promise<Watched> {
    const watched = await start((request, answer) => (request.watch ? answer.open() : answer.list('10', items)));
    await watched.store.whenSynced();
    await until(() => server.watches.length === 1);
    return watched;
  }

  afterEach(async () => {
    const closing = cluster.close();
    await server.close();
    await closing;
  });

  it('ends a watch that grows above the limit, and relists minutes later', async () => {
    let lists = 0;
    const { store, changes } = await start(
      (request, answer) => {
        if (!request.watch) {
          lists += 1;
          // The second list is still too long.
          return answer.list('10', lists === 2 ? [pod('a', '5'), pod('b', '7')] : [pod('a', '5')]);
        }
        answer.open();
        if (lists === 1) answer.event('ADDED', pod('b', '11'));
      },
      { maxObjects: 1 },
    );
    await store.whenSynced();
    await until(() => store.failing !== undefined);
    await advanceIo(clock, 120_000);
    assert.equal(lists, 1);
    await advanceIo(clock, 180_000);
    await until(() => lists === 2 && clock.pendingTimers > 0);
    assert.equal(store.failing?.reason, 'the server has more than 1 pods');
    assert.ok(store.failing.forMs > 180_000);
    await advanceIo(clock, 300_000);
    await until(() => lists === 3 && store.failing === undefined);
    assert.deepEqual(changes(), ['added a 5']);
  });

  it('lists, then follows added, modified, and deleted objects', async () => {
    const { store, changes } = await start((request, answer) => {
      if (!request.watch) return answer.list('10', [pod('a', '5'), pod('b', '7')]);
      answer.open();
      answer.event('ADDED', pod('c', '11'));
      answer.event('MODIFIED', pod('a', '12', 'uid-a', { phase: 'Running' }));
      answer.event('DELETED', pod('b', '13'));
    });
    await store.whenSynced();
    await until(() => changes().length === 5);
    assert.deepEqual(changes(), ['added a 5', 'added b 7', 'added c 11', 'updated a 5>12', 'deleted b']);
    assert.equal(store.get('default/a')?.phase, 'Running');
    assert.deepEqual([...store.list()].map(({ key }) => key).sort(), ['default/a', 'default/c']);
    const [watch] = server.watches;
    assert.equal(watch?.query.get('resourceVersion'), '10');
    assert.equal(watch?.query.get('allowWatchBookmarks'), 'true');
    assert.equal(watch?.query.get('timeoutSeconds'), '330');
  });

  it('pages through long lists', async () => {
    const { store } = await start((request, answer) => {
      if (request.watch) return answer.open();
      assert.equal(request.query.get('limit'), '500');
      if (request.query.get('continue') === 'more') return answer.list('10', [pod('b', '6')]);
      answer.list('10', [pod('a', '5')], 'more');
    });
    await store.whenSynced();
    assert.deepEqual(pluck([...store.list()], 'key'), ['default/a', 'default/b']);
  });

  it('restarts a list that expires between two pages', async () => {
    let lists = 0;
    const { store, changes } = await start((request, answer) => {
      if (request.watch) return answer.open();
      lists++;
      if (lists === 1) return answer.list('10', [pod('a', '5')], 'old');
      if (lists === 2) return answer.status(410, 'Expired');
      answer.list('20', [pod('b', '15')]);
    });
    await store.whenSynced();
    assert.deepEqual(changes(), ['added b 15']);
    assert.equal(server.watches[0]?.query.get('resourceVersion') ?? '20', '20');
  });

  it('retries a failed list with backoff', async () => {
    let fail = true;
    const { store } = await start((request, answer) => {
      if (request.watch) return answer.open();
      if (fail) return answer.status(500, 'InternalError');
      answer.list('10', [pod('a', '5')]);
    });
    await advanceIo(clock, 5_000);
    assert.equal(store.synced, false);
    assert.ok(server.lists.length >= 3 && server.lists.length <= 7, `${server.lists.length} lists in 5 s`);
    fail = false;
    await advanceIo(clock, 10_000);
    await store.whenSynced();
  });

  const interruptions: [name: string, interrupt: (answer: Answer) => void][] = [
    ['the connection is reset', (answer) => answer.reset()],
    ['the server ends the watch', (answer) => answer.end()],
    ['a line is cut short', (answer) => answer.end('{"type":"MODIFIED","object":{"kind":"P')],
    ['a line is no JSON', (answer) => answer.write('{"type":"MODIFIED","obj\n')],
    ['a line is no event', (answer) => answer.write('{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}\n')],
    ['the server reports 500 inside the stream', (answer) => answer.event('ERROR', { kind: 'Status', code: 500 })],
  ];
  for (const [name, interrupt] of interruptions) {
    it(`resumes at its version when ${name}`, async () => {
      const { store, changes } = await start((request, answer) => {
        if (!request.watch) return answer.list('10', [pod('a', '5')]);
        answer.open();
        if (server.watches.length > 1) return answer.event('MODIFIED', pod('a', '12'));
        answer.event('MODIFIED', pod('a', '11'));
        setImmediate(() => interrupt(answer));
      });
      await store.whenSynced();
      await advanceIo(clock, 2_000);
      assert.deepEqual(changes(), ['added a 5', 'updated a 5>11', 'updated a 11>12']);
      assert.equal(server.lists.length, 1, 'no second list');
      assert.equal(server.watches[1]?.query.get('resourceVersion'), '11');
    });
  }

  for (const code of [429, 503, 500]) {
    it(`reopens the watch after ${code}`, async () => {
      const { store, changes } = await start((request, answer) => {
        if (!request.watch) return answer.list('10', [pod('a', '5')]);
        if (server.watches.length === 1) return answer.status(code);
        answer.open();
        answer.event('DELETED', pod('a', '11'));
      });
      await store.whenSynced();
      await advanceIo(clock, 3_000);
      assert.deepEqual(changes(), ['added a 5', 'deleted a']);
      assert.equal(server.lists.length, 1);
    });
  }

  it('backs off from a server that closes every watch at once', async () => {
    await start((request, answer) => {
      if (!request.watch) return answer.list('10', []);
      answer.open();
      answer.end();
    });
    await advanceIo(clock, 5_000);
    assert.ok(server.watches.length >= 2 && server.watches.length <= 6, `${server.watches.length} watches in 5 s`);
    assert.equal(server.lists.length, 1);
  });

  it('backs off from a server that lists but finds every version too old', async () => {
    await start((request, answer) => (request.watch ? answer.status(410, 'Expired') : answer.list('10', [])));
    await advanceIo(clock, 5_000);
    assert.ok(server.lists.length <= 6, `${server.lists.length} lists in 5 s`);
  });

  const expirations: [name: string, expire: (answer: Answer) => void][] = [
    ['answers 410', (answer) => answer.status(410, 'Expired')],
    ['sends 410 inside the stream', (answer) => answer.event('ERROR', { kind: 'Status', code: 410 })],
  ];
  for (const [name, expire] of expirations) {
    it(`relists and emits the differences when the server ${name}`, async () => {
      const relists: string[] = [];
      const script: Script = (request, answer) => {
        if (!request.watch && server.lists.length === 1) {
          return answer.list('10', [pod('kept', '1'), pod('changed', '2'), pod('gone', '3'), pod('reborn', '4')]);
        }
        if (!request.watch) {
          return answer.list('30', [
            pod('kept', '1'),
            pod('changed', '21'),
            pod('reborn', '22', 'other'),
            pod('new', '23'),
          ]);
        }
        if (server.watches.length === 1) return expire(answer);
        answer.open();
      };
      const { store, changes } = await start(script, { onRelist: () => void relists.push('pods') });
      await store.whenSynced();
      await advanceIo(clock, 2_000);
      assert.deepEqual(changes().slice(4), [
        'deleted gone unseen',
        'updated changed 2>21',
        'deleted reborn',
        'added reborn 22',
        'added new 23',
      ]);
      assert.deepEqual(relists, ['pods']);
      assert.equal(server.watches[1]?.query.get('resourceVersion'), '30');
    });
  }

  it('resumes within 5 s after an outage of a minute, even if its version was compacted', async () => {
    const { changes } = await startQuiet(pod('a', '5'));
    server.follow((_request, answer) => answer.reset());
    server.answers.at(-1)?.reset();
    await advanceIo(clock, 60_000);
    assert.ok(server.watches.length <= 25, `${server.watches.length} watches in a minute`);
    server.follow((request, answer) => {
      if (!request.watch) answer.list('90', [pod('b', '85')]);
      else if (request.query.get('resourceVersion') === '10') answer.status(410, 'Expired');
      else answer.open();
    });
    await advanceIo(clock, 5_000);
    assert.deepEqual(changes(), ['added a 5', 'deleted a unseen', 'added b 85']);
    assert.equal(server.watches.at(-1)?.query.get('resourceVersion'), '90');
  });

  it('relists if the stream breaks at the same place repeatedly', async () => {
    const { store } = await start((request, answer) => {
      if (!request.watch) return answer.list(server.lists.length === 1 ? '10' : '20', []);
      answer.open();
      if (request.query.get('resourceVersion') === '10') answer.write('nonsense\n');
    });
    await store.whenSynced();
    await advanceIo(clock, 10_000);
    assert.equal(server.lists.length, 2);
    const from = server.watches.map(({ query }) => query.get('resourceVersion'));
    assert.deepEqual(from, ['10', '10', '10', '20']);
  });

  it('resumes from the last bookmark', async () => {
    const { store } = await start((request, answer) => {
      if (!request.watch) return answer.list('10', []);
      answer.open();
      if (server.watches.length > 1) return;
      answer.bookmark('77');
      setImmediate(() => answer.reset());
    });
    await store.whenSynced();
    await advanceIo(clock, 2_000);
    assert.equal(server.watches[1]?.query.get('resourceVersion'), '77');
  });

  describe('of a kind whose schema may change', () => {
    const atLast = [pod('a', '11', 'uid-a', { phase: 'Running' }), pod('b', '5')];

    it('relists when the server ends a watch early, because it may have sent objects pruned to the old schema', async () => {
      const { store, changes } = await start(
        (request, answer) => {
          if (!request.watch && server.lists.length > 1) return answer.list('12', atLast);
          if (!request.watch) return answer.list('10', [pod('a', '5'), pod('b', '5')]);
          answer.open();
          if (server.watches.length > 1) return;
          answer.event('MODIFIED', pod('a', '11'));
          setImmediate(() => answer.end());
        },
        { followsSchema: true },
      );
      await store.whenSynced();
      await until(() => changes().length === 3);
      await advanceIo(clock, 2_000);
      await until(() => changes().length === 4);
      assert.deepEqual(changes(), ['added a 5', 'added b 5', 'updated a 5>11', 'updated a 11>11']);
      assert.equal(store.get('default/a')?.phase, 'Running');
    });

    it('resumes at its version when the watch ends on time or breaks', async () => {
      const { store } = await start(
        (request, answer) => {
          if (!request.watch) return answer.list('10', []);
          answer.open();
          if (server.watches.length === 1) setImmediate(() => answer.reset());
        },
        { followsSchema: true },
      );
      await store.whenSynced();
      await advanceIo(clock, 2_000);
      for (let i = 0; i < 22; i++) {
        server.answers.at(-1)?.bookmark(String(11 + i));
        await advanceIo(clock, 15_000, 1_000);
      }
      const watches = server.watches.length;
      server.answers.at(-1)?.end();
      await until(() => server.watches.length > watches);
      assert.equal(server.lists.length, 1);
    });
  });

  it('never replaces an object by an older version, whatever the order of events', async () => {
    const { changes } = await start((request, answer) => {
      if (!request.watch) return answer.list('10', [pod('a', '9')]);
      answer.open();
      answer.event('MODIFIED', pod('a', '13'));
      answer.event('MODIFIED', pod('a', '12'));
      answer.event('MODIFIED', pod('a', '13'));
      answer.event('ADDED', pod('b', '11'));
      answer.event('DELETED', pod('b', '14'));
      answer.event('ADDED', pod('b', '11'));
      answer.event('DELETED', pod('a', '12'));
      answer.event('ADDED', pod('end', '15'));
    });
    await until(() => changes().includes('added end 15'));
    assert.deepEqual(changes(), ['added a 9', 'updated a 9>13', 'added b 11', 'deleted b', 'added end 15']);
  });

  it('emits deleted and added for an object that was replaced by another of its name', async () => {
    const { events, changes } = await start((request, answer) => {
      if (!request.watch) return answer.list('10', [pod('a', '9', 'first')]);
      answer.open();
      answer.event('MODIFIED', pod('a', '12', 'second'));
    });
    await until(() => changes().length === 3);
    assert.deepEqual(changes(), ['added a 9', 'deleted a', 'added a 12']);
    assert.deepEqual(
      events.map((event) => ('now' in event ? event.now.uid : event.before.uid)),
      ['first', 'first', 'second'],
    );
  });

  it('rejects older lists, until they persist', async () => {
    const { store, changes } = await start((request, answer) => {
      if (!request.watch) {
        return server.lists.length === 1
          ? answer.list('100', [pod('a', '90')])
          : answer.list('50', [pod('revoked', '40')]);
      }
      answer.status(410, 'Expired');
    });
    await store.whenSynced();
    await advanceIo(clock, 20_000);
    assert.deepEqual(changes(), ['added a 90']);
    await advanceIo(clock, 25_000);
    assert.deepEqual(changes(), ['added a 90', 'deleted a unseen', 'added revoked 40']);
  });

  it('continues without loss when a listener throws', async () => {
    const { store, changes } = await start((request, answer) => {
      if (!request.watch) return answer.list('10', [pod('a', '5')]);
      answer.open();
      answer.event('ADDED', pod('b', '11'));
      answer.event('ADDED', pod('c', '12'));
    });
    const seen: string[] = [];
    store.subscribe((event) => {
      seen.push(describeEvent(event));
      throw new Error('listener');
    });
    await until(() => changes().length === 3);
    assert.deepEqual(seen, ['added a 5', 'added b 11', 'added c 12']);
  });

  it('omits objects that the projection omits or fails on', async () => {
    const { store } = await start(
      (request, answer) => {
        if (!request.watch) return answer.list('10', [pod('a', '5'), pod('skip', '6'), pod('throw', '7')]);
        answer.open();
      },
      {
        project: (object) => {
          if (object.metadata.name === 'throw') throw new Error('projection');
          return object.metadata.name === 'skip' ? undefined : view(object);
        },
      },
    );
    await store.whenSynced();
    assert.deepEqual(pluck([...store.list()], 'key'), ['default/a']);
  });

  it('opens a watch anew after 75 s without a bookmark, and delivers what the silent one missed', async () => {
    const { changes } = await startQuiet();
    server.follow((_request, answer) => {
      answer.open();
      answer.event('ADDED', pod('missed', '11'));
    });
    await advanceIo(clock, 74_000, 1_000);
    assert.equal(server.watches.length, 1);
    await advanceIo(clock, 2_000);
    assert.deepEqual(changes(), ['added missed 11']);
    assert.equal(server.watches.at(-1)?.query.get('resourceVersion'), '10');
    assert.deepEqual(pluck(server.answers, 'closed'), [true, true, false], 'the silent connection is closed');
  });

  for (const [what, reject] of [
    ['answers another watch with 429', (answer) => answer.status(429, 'TooManyRequests', { 'retry-after': '1' })],
    [
      'answers another watch with 429 and a wait of a day',
      (answer) => answer.status(429, 'TooManyRequests', { 'retry-after': '86400' }),
    ],
    ['answers another watch with 503', (answer) => answer.status(503)],
    ['does not answer another watch', () => undefined],
  ] satisfies [string, (answer: Answer) => void][]) {
    it(`is stale from 90 s of silence on if the server ${what}, and current once it accepts another watch`, async () => {
      const { store } = await startQuiet();
      server.follow((_request, answer) => reject(answer));
      await advanceIo(clock, 89_000, 1_000);
      assert.equal(storesProblem([store]), undefined);
      await advanceIo(clock, 2_000, 1_000);
      assert.equal(storesProblem([store]), 'no data from the API server for over 90 s: pods');
      assert.notEqual(server.watches.length, 1);
      server.follow((_request, answer) => answer.open());
      await advanceIo(clock, 60_000, 1_000);
      assert.equal(storesProblem([store]), undefined);
      assert.equal(server.lists.length, 1);
    });
  }

  it('reports the failure and its duration until the server answers again', async () => {
    let away = false;
    const { store } = await start((request, answer) => {
      if (away) return answer.status(500, 'InternalError');
      if (request.watch) return answer.open();
      answer.list('10', []);
    });
    const failing = () => store.failing;
    await store.whenSynced();
    await until(() => server.watches.length === 1);
    assert.equal(failing(), undefined);
    away = true;
    server.answers.at(-1)?.end();
    await advanceIo(clock, 12_000, 500);
    assert.match(failing()?.reason ?? '', /500/);
    assert.ok((failing()?.forMs ?? 0) > 10_000, `for ${failing()?.forMs} ms`);
    away = false;
    await advanceIo(clock, 6_000, 500);
    assert.equal(failing(), undefined);
  });

  it('treats an absent optional kind as synced, and finds it once it exists', async () => {
    let installed = false;
    const { store, changes } = await start(
      (request, answer) => {
        if (!installed) return answer.status(404, 'NotFound');
        if (request.watch) return answer.open();
        answer.list('10', [pod('a', '5')]);
      },
      { optional: true },
    );
    await store.whenSynced();
    assert.deepEqual([...store.list()], []);
    await advanceIo(clock, 300_000, 1_000);
    assert.ok(server.lists.length <= 25, `${server.lists.length} looks in 300 s`);
    assert.equal(store.synced, true);
    assert.ok(store.ageMs <= 30_000);
    installed = true;
    await advanceIo(clock, 30_000, 1_000);
    assert.deepEqual(changes(), ['added a 5']);
  });

  it('empties the store of a removed optional kind', async () => {
    const { store, changes } = await start(
      (request, answer) => {
        if (request.watch && server.watches.length === 1) answer.open();
        else if (server.requests.length === 1) answer.list('10', [pod('a', '5')]);
        else answer.status(404, 'NotFound');
      },
      { optional: true },
    );
    await store.whenSynced();
    await until(() => server.watches.length === 1);
    server.answers.at(-1)?.end();
    await advanceIo(clock, 3_000);
    assert.deepEqual(changes(), ['added a 5', 'deleted a unseen']);
  });

  it('ends the watch when the last handle is released', async () => {
    const { store } = await start((request, answer) => (request.watch ? answer.open() : answer.list('10', [])));
    const first = cluster.watch({ resource: pods, project: view });
    const second = cluster.watch({ resource: pods, project: view, indexes: { phase: ({ phase }) => [phase] } });
    assert.equal(first.store, store);
    assert.equal(second.store, store, 'a new index does not need a second watch');
    await store.whenSynced();
    await until(() => server.watches.length === 1);
    assert.deepEqual(second.store.byIndex('phase', 'none'), []);
    first.release();
    first.release();
    second.release();
    assert.equal(server.answers.at(-1)?.closed, false);
    handle?.release();
    await until(() => server.answers.at(-1)?.closed === true);
    await advanceIo(clock, 60_000, 5_000);
    assert.equal(server.watches.length, 1);
  });

  it('fills every index of a second reader from the objects it already has', async () => {
    const { store } = await startQuiet(pod('a', '5'), pod('b', '6'));
    const indexes = { key: ({ key }: { key: string }) => [key], all: () => ['all'] };
    const second = cluster.watch({ resource: pods, project: view, indexes });
    assert.equal(second.store, store);
    assert.equal(second.store.byIndex('key', 'default/a').length, 1);
    assert.equal(second.store.byIndex('all', 'all').length, 2);
    second.release();
  });

  it('rejects waiting callers if it is stopped before the sync', async () => {
    const { store } = await start((_request, answer) => answer.status(403, 'Forbidden'));
    const abort = new AbortController();
    const waits = [store.whenSynced(), store.whenSynced(abort.signal)];
    abort.abort(new Error('given up'));
    await assert.rejects(waits[1] ?? Promise.resolve(), /given up/);
    handle?.release();
    await assert.rejects(waits[0] ?? Promise.resolve(), { code: 'StoreClosed' });
  });
});

interface Watched {
  readonly store: Store<PodView>;
  readonly events: StoreEvent<PodView>[];
  readonly changes: () => string[];
}

function describeEvent(event: StoreEvent<PodView>): string {
  const name = event.key.replace('default/', '');
  if (event.type === 'added') return `added ${name} ${event.now.resourceVersion}`;
  if (event.type === 'deleted') return `deleted ${name}${event.inferred ? ' unseen' : ''}`;
  return `updated ${name} ${event.before.resourceVersion}>${event.now.resourceVersion}`;
}

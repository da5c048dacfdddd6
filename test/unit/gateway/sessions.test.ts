import assert from 'node:assert/strict';
import type { LiveGrant } from '../../../src/gateway/live-grants.ts';
import { type Endable, type Session, Sessions } from '../../../src/gateway/sessions.ts';
import type { StreamEnd } from '../../../src/gateway/stream-end.ts';
import { GatewayCluster } from '../../support/gateway-cluster.ts';
import { chooseSeed, seededRandom } from '../../support/random.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const minute = 60_000;

class Recorder implements Endable {
  readonly ends: StreamEnd['code'][] = [];
  readonly warnings: string[] = [];
  end({ code }: StreamEnd): void {
    if (this.ends.length === 0) this.ends.push(code);
  }
  warn(text: string): void {
    this.warnings.push(text);
  }
}

class Stage {
  readonly clock = new SimulatedClock();
  readonly cluster = new GatewayCluster(this.clock);
  readonly sessions = new Sessions(this.cluster.grants, this.clock);

  /** With the minutes for which the grant is open; without, it is not. */
  constructor(minutes = 0) {
    if (minutes > 0) this.cluster.open(this.clock.now() + minutes * minute);
  }

  live(): LiveGrant | undefined {
    const { namespace, name } = this.cluster.grant;
    const found = this.cluster.grants.find(namespace, name);
    return 'status' in found ? undefined : found;
  }

  /** A session of the live grant without a stream. */
  beginBare(): Session {
    const live = this.live();
    assert.ok(live, this.code());
    const session = this.sessions.begin(live);
    assert.ok(session);
    return session;
  }

  code(): string {
    const { namespace, name } = this.cluster.grant;
    const found = this.cluster.grants.find(namespace, name);
    return 'status' in found ? `${found.status} ${found.code}: ${found.message}` : 'live';
  }

  /** Begins a session of the live grant. */
  begin(): Recorder {
    const stream = new Recorder();
    this.beginBare().attach(stream);
    return stream;
  }

  /** Advances the clock while the API server stays in touch. */
  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= minute / 2) {
      this.cluster.alive();
      await this.clock.advance(Math.min(left, minute / 2));
    }
    this.cluster.alive();
  }
}

describe('a session of a grant', () => {
  it('ends at the deadline of the grant, to the millisecond', async () => {
    const stage = new Stage(1);
    const stream = stage.begin();
    await stage.advance(minute - 1);
    assert.deepEqual(stream.ends, []);
    await stage.advance(1);
    assert.deepEqual(stream.ends, ['Expired']);
  });

  it('warns 10 and 2 minutes before, once each', async () => {
    const stage = new Stage(15);
    const stream = stage.begin();
    await stage.advance(5 * minute - 1);
    assert.deepEqual(stream.warnings, []);
    await stage.advance(1);
    assert.deepEqual(stream.warnings, ['access ends in 10 minutes, at 09:15 UTC']);
    await stage.advance(8 * minute);
    assert.deepEqual(stream.warnings.slice(1), ['access ends in 2 minutes, at 09:15 UTC']);
    await stage.advance(2 * minute);
    assert.deepEqual([stream.warnings.length, stream.ends], [2, ['Expired']]);
  });

  it('may begin 200 times at once, and then ten times a second, for each grant', async () => {
    const { sessions, clock } = new Stage();
    const grant = { namespace: 'payments', name: 'debug' };
    const admitted = (count: number): number =>
      Array.from({ length: count }).filter(() => sessions.countStream(grant)).length;
    assert.equal(admitted(300), 200);
    await clock.advance(1000);
    assert.equal(admitted(300), 10);
    assert.ok(sessions.countStream({ ...grant, name: 'other' }));
    await clock.advance(60_000);
    assert.equal(admitted(300), 200);
  });

  it('ends alone if it is ended, also before it has a stream', () => {
    const stage = new Stage(1);
    const other = stage.begin();
    const session = stage.beginBare();
    const stream = new Recorder();
    session.end({ code: 'Killed', atMs: stage.clock.now() });
    session.attach(stream);
    assert.deepEqual([stream.ends, other.ends], [['Killed'], []]);
  });

  const causes: readonly [string, (cluster: GatewayCluster) => void, StreamEnd['code']][] = [
    ['is revoked', (cluster) => cluster.change({ spec: { templateName: 'x', revoked: true } }), 'Revoked'],
    [
      'is being deleted',
      (cluster) => cluster.change({ metadata: { deletionTimestamp: '2026-11-21T09:00:00Z' } }),
      'Revoked',
    ],
    ['is gone', (cluster) => cluster.remove(), 'Deleted'],
    ['loses its grant', (cluster) => cluster.change({ status: {} }), 'Deleted'],
    [
      'ended by a vote',
      (cluster) => {
        const grant = cluster.open(cluster.clock.now() + minute);
        const at = '2026-11-21T09:00:00Z';
        cluster.change({ status: { grant, ended: { at, how: 'Revoked', reason: 'VoteDenied', keptUntil: at } } });
      },
      'Denied',
    ],
  ];
  for (const [what, change, code] of causes) {
    it(`ends at once when the request ${what}`, () => {
      const stage = new Stage(1);
      const stream = stage.begin();
      change(stage.cluster);
      assert.deepEqual(stream.ends, [code]);
      assert.match(stage.code(), /^403 NoGrant: grant \S+ in namespace payments: .*; create a new request/);
    });
  }

  it('ends at once if the access ended before its stream was open', () => {
    const stage = new Stage(1);
    const session = stage.beginBare();
    stage.cluster.remove();
    const stream = new Recorder();
    session.attach(stream);
    assert.deepEqual(stream.ends, ['Deleted']);
  });

  it('ends when the gateway has not heard from the API server for 90 s, since a revocation could be missing', async () => {
    const stage = new Stage(60);
    const stream = stage.begin();
    await stage.clock.advance(90_000);
    assert.deepEqual(stream.ends, []);
    await stage.clock.advance(5_000);
    assert.deepEqual(stream.ends, ['Unverifiable']);
    assert.match(stage.code(), /^503 GatewayNotReady/);
  });

  it('ends within 5 s after the wall clock has jumped over the deadline', async () => {
    const stage = new Stage(30);
    const stream = stage.begin();
    stage.clock.setWall(stage.clock.now() + 31 * minute);
    await stage.advance(5_000);
    assert.deepEqual(stream.ends, ['Expired']);
  });

  it('ends when the replica stops', () => {
    const stage = new Stage(1);
    const stream = stage.begin();
    void stage.sessions.close();
    assert.deepEqual(stream.ends, ['Restarting']);
  });

  it('lets a stopping replica wait for its end, at most 3 s', async () => {
    const stage = new Stage(1);
    const closed = async (end: () => unknown): Promise<boolean> => {
      let isClosed = false;
      void stage.sessions.close().then(() => {
        isClosed = true;
      });
      await stage.clock.advance(2_999);
      assert.equal(isClosed, false);
      await end();
      await stage.clock.settle();
      return isClosed;
    };
    const session = stage.beginBare();
    assert.equal(await closed(() => session.close()), true, 'the session is over');
    stage.beginBare();
    assert.equal(await closed(() => stage.clock.advance(1)), true, 'the time is over');
  });

  it('does not begin if the grant has 64', () => {
    const stage = new Stage(1);
    const live = stage.live();
    assert.ok(live);
    const sessions = Array.from({ length: 64 }, () => stage.sessions.begin(live));
    assert.ok(sessions.every((session) => session !== undefined));
    assert.equal(stage.sessions.begin(live), undefined);
    sessions[0]?.close();
    sessions[0]?.close();
    assert.ok(stage.sessions.begin(live));
    assert.equal(stage.sessions.begin(live), undefined);
  });

  it('does not begin if the replica has 1,000 of any grants', () => {
    const stage = new Stage(1);
    const live = stage.live();
    assert.ok(live);
    const begin = (number: number) => stage.sessions.begin({ ...live, name: `grant-${number % 50}` });
    const sessions = Array.from({ length: 1000 }, (_, number) => begin(number));
    assert.ok(sessions.every((session) => session !== undefined));
    assert.equal(begin(0), undefined);
    sessions[0]?.close();
    assert.ok(begin(0));
    assert.equal(begin(0), undefined);
  });

  it('leaves no timer behind', () => {
    const stage = new Stage(1);
    stage.beginBare().close();
    assert.equal(stage.sessions.count, 0);
    void stage.sessions.close();
    assert.equal(stage.clock.pendingTimers, 0);
  });
});

describe('in random histories, no session outlives its grant', () => {
  const seed = chooseSeed(1);
  for (let run = 0; run < 50; run++) {
    it(`history ${run} of seed ${seed}`, () => replay(seed * 1000 + run));
  }

  async function replay(number: number): Promise<void> {
    const next = seededRandom(number);
    const stage = new Stage();
    const { cluster, clock } = stage;
    /** The truth: when access ends, wall clock; undefined without access. */
    let endMs: number | undefined;
    let extensions = 0;
    let streams: Recorder[] = [];
    const over = (): void => {
      endMs = undefined;
    };
    const acts: Readonly<Record<string, () => unknown>> = {
      grant: () => {
        if (endMs !== undefined) return;
        cluster.remove();
        endMs = Math.ceil((clock.now() + 1 + next() * 20 * minute) / 1000) * 1000;
        cluster.open(endMs);
        extensions = 0;
      },
      extend: () => {
        if (endMs === undefined || endMs <= clock.now()) return;
        endMs += minute;
        cluster.extend(extensions++, endMs);
      },
      revoke: () => {
        if (endMs === undefined) return;
        cluster.change({ spec: { templateName: 'x', revoked: true } });
        over();
      },
      remove: () => {
        cluster.remove();
        over();
      },
      begin: () => {
        const live = stage.live();
        if (!live) return;
        const stream = new Recorder();
        stage.sessions.begin(live)?.attach(stream);
        streams.push(stream);
      },
      pass: () => stage.advance(next() * 5 * minute),
    };
    const names = Object.keys(acts);
    for (let step = 0; step < 60; step++) {
      const name = names[Math.floor(next() * names.length)] ?? '';
      await acts[name]?.();
      streams = streams.filter(({ ends }) => ends.length === 0);
      const isLive = endMs !== undefined && clock.now() < endMs;
      assert.equal(stage.live() !== undefined, isLive, `step ${step}, ${name}`);
      if (!isLive) assert.equal(streams.length, 0, `step ${step}, ${name}: a session outlives its grant`);
    }
  }
});

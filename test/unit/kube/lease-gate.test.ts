import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import { pods } from '../../../src/api/resources.ts';
import { aborted } from '../../../src/kit/promises.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { type LeaseGate, type LeaseGateOptions, leaseGate } from '../../../src/kube/lease-gate.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { advanceIo, settleIo, until } from '../../support/io.ts';
import { pluck } from '../../support/pluck.ts';
import { type Answer, pod, type Script, ScriptedApiserver } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

/** One Lease, with versions and conflicts like in an API server. */
class LeaseStore {
  lease: KubeObject | undefined;
  writes = 0;
  #version = 0;

  /** Open watches of the Lease. */
  readonly watches = new Set<Answer>();

  readonly script: Script = (request, answer) => {
    if (request.watch) {
      answer.open();
      this.watches.add(answer);
      return;
    }
    if (request.query.has('fieldSelector')) return answer.list(String(this.#version), this.lease ? [this.lease] : []);
    if (request.method === 'GET') return this.lease ? answer.json(200, this.lease) : answer.status(404, 'NotFound');
    const wanted = request.body as KubeObject;
    if (request.method === 'POST' && this.lease) return answer.status(409, 'AlreadyExists');
    if (request.method === 'PUT' && wanted.metadata.resourceVersion !== this.lease?.metadata.resourceVersion) {
      return answer.status(409, 'Conflict');
    }
    answer.json(200, this.put(wanted));
  };

  put(wanted: KubeObject): KubeObject {
    this.writes++;
    this.lease = { ...wanted, metadata: { ...wanted.metadata, uid: 'u', resourceVersion: String(++this.#version) } };
    for (const watch of this.watches) if (!watch.closed) watch.event('MODIFIED', this.lease);
    return this.lease;
  }

  get spec(): Record<string, unknown> {
    return (this.lease?.spec ?? {}) as Record<string, unknown>;
  }
}

/** A clock of a frozen machine: time passes, but no timer runs. */
class FreezableClock extends SimulatedClock {
  frozenMs = 0;

  override monotonic(): number {
    return super.monotonic() + this.frozenMs;
  }
}

describe('lease gate', () => {
  let clock: SimulatedClock;
  let store: LeaseStore;
  let cleanUp: (() => Promise<unknown>)[];

  beforeEach(() => {
    clock = new SimulatedClock();
    store = new LeaseStore();
    cleanUp = [];
  });
  afterEach(() => Promise.all(cleanUp.map((end) => end())));

  interface Candidate {
    readonly gate: LeaseGate;
    readonly server: ScriptedApiserver;
    readonly cluster: OpenCluster;
    readonly stop: AbortController;
    readonly running: Promise<void>;
    /** The number of current leads, and of all leads so far. */
    now: number;
    reigns: number;
    /** Ends a lead that was aborted. */
    finish: () => void;
  }

  async function candidate(
    identity: string,
    options: Partial<LeaseGateOptions> & { slow?: boolean; script?: Script } = {},
  ): Promise<Candidate> {
    const server = await ScriptedApiserver.start(options.script ?? store.script);
    const cluster = openCluster(staticCredentials({ server: server.url }), { clock, random: () => 0.5 });
    const gate = leaseGate({ cluster, name: 'test', namespace: 'ns', identity, clock, random: () => 0.5, ...options });
    const stop = new AbortController();
    const self: Candidate = {
      gate,
      server,
      cluster,
      stop,
      running: Promise.resolve().then(() => gate.run(lead, stop.signal)),
      now: 0,
      reigns: 0,
      finish: () => {},
    };
    async function lead(signal: AbortSignal): Promise<void> {
      self.now++;
      self.reigns++;
      await aborted(signal);
      self.now--;
      if (options.slow) await new Promise<void>((resolve) => (self.finish = resolve));
    }
    cleanUp.push(() => {
      stop.abort();
      return Promise.all([cluster.close(), server.close()]);
    });
    return self;
  }

  /** A candidate that leads. */
  async function leader(...args: Parameters<typeof candidate>): Promise<Candidate> {
    const found = await candidate(...args);
    await until(() => found.now === 1);
    return found;
  }

  it('acquires a free Lease at once and writes it like client-go', async () => {
    const a = await leader('a');
    assert.equal(a.gate.leading, true);
    assert.deepEqual(store.lease?.metadata.name, 'test');
    assert.deepEqual(store.spec, {
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-11-21T09:00:00.000000Z',
      renewTime: '2026-11-21T09:00:00.000000Z',
      leaseTransitions: 0,
    });
    await advanceIo(clock, 60_000);
    assert.equal(a.reigns, 1);
    assert.equal(store.spec['acquireTime'], '2026-11-21T09:00:00.000000Z');
    assert.match(String(store.spec['renewTime']), /^2026-11-21T09:00:5\d\.\d{3}000Z$/);
    assert.ok(store.writes >= 25 && store.writes <= 32, `${store.writes} writes a minute`);
  });

  it('has one leader at a time, and the next one at once after a graceful stop', async () => {
    const a = await leader('a');
    const b = await candidate('b');
    await advanceIo(clock, 60_000);
    assert.deepEqual([a.now, b.now], [1, 0]);
    a.stop.abort();
    await a.running;
    assert.equal(store.spec['holderIdentity'], '');
    assert.equal(store.spec['leaseDurationSeconds'], 1);
    await advanceIo(clock, 2_500);
    assert.deepEqual([a.now, b.now], [0, 1]);
    assert.equal(store.spec['holderIdentity'], 'b');
    assert.equal(store.spec['leaseTransitions'], 1);
  });

  it('reads nothing while another replica leads and its watch shows each renewal', async () => {
    const a = await leader('a');
    const b = await candidate('b');
    await until(() => store.watches.size === 1);
    await advanceIo(clock, 5_000);
    const before = b.server.requests.length;
    await advanceIo(clock, 60_000);
    assert.deepEqual([a.now, b.now], [1, 0]);
    assert.equal(b.server.requests.length, before);
  });

  it('leads as soon as its watch shows a release during its own attempt', async () => {
    const a = await leader('a');
    const b = await candidate('b');
    await until(() => store.watches.size === 1);
    // The watch of `b` misses renewals, so that it reads the Lease. Before it has the answer, `a` releases the Lease.
    const watches = [...store.watches];
    store.watches.clear();
    const held = store.lease;
    b.server.follow((request, answer) => {
      b.server.follow(store.script);
      if (!held || request.method !== 'GET') return store.script(request, answer);
      for (const watch of watches) store.watches.add(watch);
      a.stop.abort();
      void a.running.then(() => settleIo()).then(() => answer.json(200, held));
    });
    await advanceIo(clock, 15_500);
    await until(() => b.now === 1);
  });

  for (const [what, script] of [
    ['is silent', (request, answer) => (request.watch ? answer.open() : undefined)],
    ['is not allowed', (_request, answer) => answer.status(403)],
  ] satisfies [string, Script][]) {
    it(`takes over by reads alone, and never while another leads, if its watch ${what}`, async () => {
      const a = await leader('a');
      const b = await candidate('b', {
        script: (request, answer) =>
          request.query.has('fieldSelector') && (what === 'is not allowed' || request.watch)
            ? script(request, answer)
            : store.script(request, answer),
      });
      await advanceIo(clock, 60_000);
      assert.deepEqual([a.now, b.now], [1, 0]);
      a.stop.abort();
      await a.running;
      await advanceIo(clock, 15_500);
      assert.equal(b.now, 1);
    });
  }

  it('keeps the Lease until its work has settled', async () => {
    const a = await leader('a', { slow: true });
    const b = await candidate('b');
    a.stop.abort();
    await advanceIo(clock, 40_000);
    assert.equal(store.spec['holderIdentity'], 'a');
    assert.equal(b.now, 0);
    a.finish();
    await a.running;
    await advanceIo(clock, 2_500);
    assert.equal(b.now, 1);
  });

  const account = (key: string, uid: string, issuedAt: number) => async () => ({ key, uid, issuedAt });
  const old = account('ns/server', 'uid-1', 1000);

  it('takes over at once from a holder whose ServiceAccount was deleted and created again', async () => {
    const a = await leader('a', { account: old });
    a.server.follow((_request, answer) => answer.status(401, 'Unauthorized'));
    const b = await leader('b', { account: account('ns/server', 'uid-2', 2000) });
    assert.equal(store.spec['holderIdentity'], 'b');
    await advanceIo(clock, 10_000);
    assert.deepEqual([a.now, b.now], [0, 1]);
  });

  it('does not get a Lease back for an earlier ServiceAccount whose token is still cached', async () => {
    const b = await leader('b', { account: account('ns/server', 'uid-2', 2000) });
    const a = await candidate('a', { account: old });
    await advanceIo(clock, 60_000);
    assert.deepEqual([a.now, b.reigns], [0, 1]);
  });

  it('tries again if it cannot read its ServiceAccount in time', async () => {
    let reads = 0;
    const a = await candidate('a', { account: () => (reads++ === 0 ? new Promise(() => {}) : old()) });
    await advanceIo(clock, 8_000);
    assert.deepEqual([a.now, reads > 1], [1, true]);
  });

  for (const [which, its, other] of [
    ['any ServiceAccount', {}, {}],
    ['another name', { account: old }, { account: account('ns/other', 'uid-2', 2000) }],
    ['the same uid', { account: old }, { account: account('ns/server', 'uid-1', 2000) }],
    ['a token of the same time', { account: old }, { account: account('ns/server', 'uid-2', 1000) }],
    ['no ServiceAccount', { account: old }, { account: async () => undefined }],
  ] as const) {
    it(`takes over from a crashed leader soon after its Lease has expired, not before, with ${which}`, async () => {
      const a = await leader('a', its);
      const b = await candidate('b', other);
      await settleIo();
      a.server.follow(() => undefined);
      await advanceIo(clock, 14_500);
      assert.equal(b.now, 0);
      await advanceIo(clock, 1_500);
      assert.equal(b.now, 1);
      assert.equal(a.now, 0, 'the crashed one stopped first');
      // Otherwise the Lease would name an account that no longer holds it.
      assert.notEqual(store.lease?.metadata.annotations?.['drawbridge.dev/holder-account'], 'ns/server uid-1 1000');
    });
  }

  for (const [fault, script] of [
    ['is unreachable', (_request, answer) => answer.reset()],
    ['does not answer', () => undefined],
    ['answers 500', (_request, answer) => answer.status(500)],
  ] satisfies [string, Script][]) {
    it(`stops leading within the renew deadline if the server ${fault}, and leads again afterwards`, async () => {
      const a = await leader('a');
      a.server.follow(script);
      await advanceIo(clock, 7_500);
      assert.equal(a.now, 1);
      await advanceIo(clock, 3_000);
      assert.equal(a.now, 0);
      assert.equal(a.gate.leading, false);
      a.server.follow(store.script);
      await advanceIo(clock, 8_000);
      assert.deepEqual([a.now, a.reigns], [1, 2]);
    });
  }

  it('survives one failed renewal', async () => {
    const a = await leader('a');
    a.server.follow((_request, answer) => answer.status(500));
    await advanceIo(clock, 5_000);
    a.server.follow(store.script);
    await advanceIo(clock, 30_000);
    assert.deepEqual([a.now, a.reigns], [1, 1]);
  });

  it('survives a write of another client to its Lease', async () => {
    const a = await leader('a');
    if (store.lease) store.put({ ...store.lease, metadata: { ...store.lease.metadata, labels: { touched: 'yes' } } });
    await advanceIo(clock, 30_000);
    assert.equal(a.reigns, 1);
    assert.deepEqual(store.lease?.metadata.labels, { touched: 'yes' });
  });

  it('stops at once when it reads another holder', async () => {
    const a = await leader('a');
    if (store.lease) store.put({ ...store.lease, spec: { ...store.spec, holderIdentity: 'thief' } });
    await advanceIo(clock, 5_000);
    assert.equal(a.now, 0);
    assert.equal(store.spec['holderIdentity'], 'thief');
  });

  it('never uses the clocks of other replicas', async () => {
    for (const renewTime of ['1999-01-01T00:00:00.000000Z', '2099-01-01T00:00:00.000000Z']) {
      clock = new SimulatedClock();
      store = new LeaseStore();
      store.put({
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'test', namespace: 'ns' },
        spec: { holderIdentity: 'gone', leaseDurationSeconds: 15, renewTime },
      });
      const a = await candidate('a');
      await advanceIo(clock, 14_000);
      assert.equal(a.now, 0, 'it waits a full lease of its own time');
      await advanceIo(clock, 2_000);
      assert.equal(a.now, 1, 'and not longer');
    }
  });

  it('ignores jumps of the wall clock', async () => {
    const a = await leader('a');
    const b = await candidate('b');
    clock.setWall(clock.now() + 86_400_000);
    await advanceIo(clock, 20_000);
    clock.setWall(clock.now() - 2 * 86_400_000);
    await advanceIo(clock, 20_000);
    assert.deepEqual([a.now, a.reigns, b.now], [1, 1, 0]);
  });

  it('rejects every write after a freeze, before any timer has run', async () => {
    const frozen = new FreezableClock();
    clock = frozen;
    const a = await leader('a');
    const guarded = a.gate.requireLeader(a.cluster.client);
    frozen.frozenMs = 20_000;
    assert.equal(a.now, 1, 'no timer has aborted the lead yet');
    const writes = store.writes;
    await assert.rejects(guarded.create(pods, pod('x', '1')), { code: 'NotLeading' });
    await guarded.get(pods, { namespace: 'default', name: 'x' });
    assert.equal(store.writes, writes);
    await advanceIo(clock, 3_000);
    assert.deepEqual([a.now, a.reigns], [1, 2], 'the old lead was ended and a new one began');
  });

  it('releases the Lease even if an abandoned renewal was in flight', async () => {
    const a = await leader('a');
    a.server.follow((request, answer) => {
      // The server executes it, and its answer is too late.
      if (request.method !== 'PUT') return store.script(request, answer);
      store.put(request.body as KubeObject);
      a.server.follow(store.script);
      a.stop.abort();
    });
    await advanceIo(clock, 3_000);
    await a.running;
    assert.equal(store.spec['holderIdentity'], '');
  });

  for (const code of [403, 500]) {
    it(`tries once to release the Lease if that is answered ${code}, and ends`, async () => {
      const a = await leader('a');
      await settleIo();
      const before = a.server.requests.length;
      a.server.follow((_request, answer) => answer.status(code));
      a.stop.abort();
      await a.running;
      assert.deepEqual(pluck(a.server.requests.slice(before), 'method'), ['PUT']);
      assert.equal(store.spec['holderIdentity'], 'a');
    });
  }

  it('does not release a Lease that another replica holds by then', async () => {
    const a = await leader('a');
    assert.ok(store.lease);
    store.put({ ...store.lease, spec: { ...store.spec, holderIdentity: 'b' } });
    a.stop.abort();
    await a.running;
    assert.equal(store.spec['holderIdentity'], 'b');
  });

  it('ends with its work: returns or throws with it, and releases the Lease', async () => {
    const server = await ScriptedApiserver.start(store.script);
    const cluster = openCluster(staticCredentials({ server: server.url }), { clock });
    cleanUp.push(() => Promise.all([cluster.close(), server.close()]));
    const gate = leaseGate({ cluster, name: 'test', namespace: 'ns', identity: 'a', clock });
    await gate.run(() => Promise.resolve(), new AbortController().signal);
    assert.equal(store.spec['holderIdentity'], '');
    const failing = gate.run(() => Promise.reject(new Error('broken')), new AbortController().signal);
    await assert.rejects(failing, /broken/);
    assert.equal(store.spec['holderIdentity'], '');
  });

  it('rejects invalid times', () => {
    const cluster = { client: { urgent: () => ({}) } } as LeaseGateOptions['cluster'];
    const times = { leaseDurationMs: 5_000, renewDeadlineMs: 10_000 };
    assert.throws(() => leaseGate({ cluster, name: 'x', namespace: 'ns', identity: 'a', clock, ...times }), {
      code: 'InvalidLeaseTimes',
    });
  });
});

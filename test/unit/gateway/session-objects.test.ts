import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type AccessSession, accessSessions } from '../../../src/api/access/access-session.ts';
import { leases } from '../../../src/api/resources.ts';
import { Manager } from '../../../src/engine/manager.ts';
import type { StreamDecision } from '../../../src/gateway/pod-call.ts';
import { openReplicaStore, Replicas, replicaName } from '../../../src/gateway/replicas.ts';
import type { AuditedCall } from '../../../src/gateway/session-audit.ts';
import { SessionObjects } from '../../../src/gateway/session-objects.ts';
import { openSessionStore } from '../../../src/gateway/session-view.ts';
import type { Session } from '../../../src/gateway/sessions.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { MemoryCluster } from '../access/lifecycle/memory-cluster.ts';

const namespace = 'payments';
const server = 'drawbridge-system';
const second = 1000;

const call = {
  caller: { username: 'alice', uid: '', groups: [] },
  grant: {
    namespace,
    name: 'debug-access',
    pod: 'web-0',
    request: { kind: 'ExecAccessRequest', name: 'debug', uid: 'r-1' },
    recording: { mode: 'Required', withInput: false },
  },
} as unknown as AuditedCall;
const decisionOf = (over: Partial<StreamDecision['options']> = {}, stream: StreamDecision['stream'] = 'exec') =>
  ({ kind: 'stream', target: '', stream, options: { container: 'app', tty: true, ...over } }) as StreamDecision;

/** A session of a replica. */
class OpenSession implements Session {
  readonly id = randomUUID();
  readonly ends: string[] = [];
  attach(): void {}
  close(): void {}
  ending(): undefined {}
  end({ code }: { readonly code: string }): void {
    this.ends.push(code);
  }
}

/** A replica of the gateway on a cluster in memory. */
class Replica {
  readonly objects: SessionObjects;
  readonly replicas: Replicas;
  readonly #clock: SimulatedClock;
  readonly #stop = new AbortController();

  static async start(cluster: MemoryCluster, clock: SimulatedClock, name: string): Promise<Replica> {
    const replica = new Replica(cluster, clock, name);
    await clock.advance(0);
    return replica;
  }

  constructor(cluster: MemoryCluster, clock: SimulatedClock, name: string) {
    const { client } = cluster;
    const shared = { client, clock, log: noLog, metrics: createMetrics() };
    const store = openReplicaStore(cluster, server);
    const address = () => '10.0.0.1:9445';
    this.replicas = new Replicas({ ...shared, store, namespace: server, replica: name, address });
    this.objects = new SessionObjects({ ...shared, store: openSessionStore(cluster), replicas: this.replicas });
    this.#clock = clock;
    const manager = new Manager({ clock, log: noLog });
    for (const controller of this.objects.controllers()) manager.add(controller);
    void manager.run(this.#stop.signal);
  }

  async open(decision = decisionOf()): Promise<OpenSession> {
    const session = new OpenSession();
    const record = { event: 'session', commandHash: 'c0'.repeat(32) } as Parameters<SessionObjects['begin']>[2];
    const begun = this.objects.begin(call, decision, record, session);
    await Promise.all([begun, this.#clock.settle()]);
    return session;
  }

  /** Stops as a crash does: nothing more happens. */
  async crash(): Promise<void> {
    this.#stop.abort();
    await this.#clock.advance(100);
  }
}

describe('the objects of sessions', () => {
  let clock: SimulatedClock;
  let cluster: MemoryCluster;
  let replica: Replica;

  beforeEach(async () => {
    clock = new SimulatedClock();
    cluster = new MemoryCluster(clock);
    replica = await Replica.start(cluster, clock, 'one');
  });

  const names = (): string[] => cluster.names(accessSessions).map((key) => key.slice(namespace.length + 1));
  /** Asks for a session whose AccessSession the API server creates, but whose answer is lost, so that the replica refuses the session. */
  const refuseOne = async (): Promise<void> => {
    const { client } = cluster;
    const create = client.create;
    client.create = async (...args) => {
      await create(...args);
      throw new Error('the answer was lost');
    };
    await assert.rejects(replica.open(), { code: 'GatewayFailed' });
    client.create = create;
  };
  const writes = (): string[] =>
    cluster.calls.splice(0).flatMap(({ verb, plural }) => (verb === 'get' ? [] : [`${verb} ${plural}`]));
  const leaseNames = (): string[] => cluster.names(leases);
  const drop = (name: string) => cluster.drop(accessSessions, { namespace, name });

  it('cost two writes a session, and a renewal of the Lease in 30 s while there is one', async () => {
    const session = await replica.open();
    await clock.advance(second);
    assert.deepEqual(writes(), ['apply leases', 'create accesssessions']);
    const other = await replica.open();
    replica.objects.end(namespace, session);
    replica.objects.end(namespace, session);
    await clock.advance(second);
    assert.deepEqual(writes(), ['create accesssessions', 'delete accesssessions']);
    assert.deepEqual(names(), [other.id]);
    await clock.advance(50 * second);
    assert.deepEqual(writes(), ['apply leases']);
    replica.objects.end(namespace, other);
    await clock.advance(3600 * second);
    assert.deepEqual(writes(), ['delete accesssessions'], 'a gateway at rest writes nothing');
    assert.deepEqual([session.ends, other.ends], [[], []]);
  });

  it('say what the user does, without the command', async () => {
    await replica.open(decisionOf({ container: undefined, command: ['secret'] }, 'portforward'));
    const [key = ''] = names();
    const { spec } = cluster.find(accessSessions, { namespace, name: key }) as unknown as AccessSession;
    assert.deepEqual(spec, {
      user: 'alice',
      grant: 'debug-access',
      request: { kind: 'ExecAccessRequest', name: 'debug' },
      pod: 'web-0',
      stream: 'portforward',
      tty: true,
      commandHash: 'c0'.repeat(32),
      recording: 'Off',
      replica: 'one',
      startedAt: '2026-11-21T09:00:00Z',
    });
  });

  it('end their sessions when they are deleted', async () => {
    const [session, other] = [await replica.open(), await replica.open()];
    drop(session.id);
    await clock.advance(0);
    assert.deepEqual([session.ends, other.ends], [['Killed'], []]);
  });

  it('end their sessions when they are deleted while the watch is broken, at the latest 30 s later', async () => {
    cluster.lagging = accessSessions;
    const session = await replica.open();
    drop(session.id);
    cluster.loseEvents();
    await clock.advance(35 * second);
    assert.deepEqual(session.ends, ['Killed']);
  });

  it('end their sessions when they are deleted before the API server has answered that they exist', async () => {
    const session = new OpenSession();
    const { client } = cluster;
    const create = client.create;
    client.create = async (...args) => {
      const created = await create(...args);
      drop(session.id);
      await clock.settle();
      return created;
    };
    await replica.objects.begin(call, decisionOf(), { event: 'session' } as never, session);
    await clock.advance(0);
    assert.deepEqual(session.ends, ['Killed']);
  });

  it('do not end their sessions while the watch lags', async () => {
    cluster.lagging = accessSessions;
    const session = await replica.open();
    await clock.advance(120 * second);
    cluster.deliverEvents();
    await clock.advance(0);
    assert.deepEqual(session.ends, []);
  });

  it('are required: a session without one is refused, and an object that appears nevertheless is deleted', async () => {
    await refuseOne();
    await clock.advance(second);
    assert.deepEqual(names(), []);
    await replica.open();
  });

  for (const unanswered of ['create', 'apply']) {
    it(`refuse the session if the API server does not answer the call ${unanswered} for 5 s`, async () => {
      cluster.fault = ({ verb }) => (verb === unanswered ? new Promise(() => {}) : undefined);
      let isRefused = false;
      const refused = assert.rejects(replica.open(), { code: 'GatewayFailed' }).then(() => {
        isRefused = true;
      });
      await clock.advance(5 * second);
      assert.ok(isRefused);
      await refused;
    });
  }

  it('are deleted again and again until that succeeds', async () => {
    const session = await replica.open();
    let failures = 0;
    cluster.fault = ({ verb }) => {
      if (verb === 'delete' && failures++ < 5) throw new Error('the API server is away');
    };
    replica.objects.end(namespace, session);
    await clock.advance(30 * second);
    assert.deepEqual([names(), failures], [[], 6]);
  });

  describe('of another replica', () => {
    it('stay while it renews its Lease', async () => {
      const other = await Replica.start(cluster, clock, 'two');
      const session = await other.open();
      await clock.advance(600 * second);
      assert.deepEqual(names(), [session.id]);
      assert.equal(replica.replicas.addressOf('two'), '10.0.0.1:9445');
    });

    it('are deleted two minutes after its last renewal, and then its Lease is gone, too', async () => {
      const other = await Replica.start(cluster, clock, 'two');
      await other.open();
      await other.crash();
      await clock.advance(119 * second);
      assert.deepEqual([names().length, leaseNames().length], [1, 1]);
      await clock.advance(2 * second);
      assert.deepEqual([names(), leaseNames()], [[], []]);
    });

    it('stay if the watch of Leases is broken, because the API server is asked first', async () => {
      const other = await Replica.start(cluster, clock, 'two');
      await other.open();
      cluster.lagging = leases;
      await clock.advance(600 * second);
      assert.equal(names().length, 1);
    });

    it('stay if it is seen before its Lease', async () => {
      cluster.lagging = leases;
      const other = await Replica.start(cluster, clock, 'two');
      const session = await other.open();
      await clock.advance(second);
      cluster.deliverEvents();
      assert.deepEqual([names(), session.ends], [[session.id], []]);
    });
  });

  it('are deleted when the process stops, and the Lease after them', async () => {
    await replica.open();
    await replica.open();
    await replica.crash();
    writes();
    await replica.objects.close();
    assert.deepEqual(writes(), ['delete accesssessions', 'delete accesssessions', 'delete leases']);
    assert.deepEqual([names(), leaseNames()], [[], []]);
  });

  it('do not hold up a process that stops', async () => {
    await replica.open();
    await replica.crash();
    cluster.fault = ({ plural }) => (plural === accessSessions.plural ? new Promise(() => {}) : undefined);
    const closed = replica.objects.close();
    await clock.advance(5 * second);
    await closed;
    assert.deepEqual(leaseNames(), [], 'so that another replica deletes them at once');
  });

  it('and the Leases converge after a crash at any call, and none of a live session is lost', async () => {
    /** Sessions of replica one, which crashes at the call of this number. Resolves to the number of its calls. */
    const crashAt = async (last: number, successor: string): Promise<number> => {
      let calls = 0;
      cluster.fault = () => {
        if (++calls > last) throw new Error('the process is gone');
      };
      const ignore = (): undefined => undefined;
      const opened = [];
      for (let count = 0; count < 3; count++) opened.push(await replica.open().catch(ignore));
      const [early, later] = opened;
      if (early) replica.objects.end(namespace, early);
      await clock.advance(35 * second);
      if (later) replica.objects.end(namespace, later);
      await clock.advance(second);
      await replica.crash();
      if (last === Number.POSITIVE_INFINITY) await replica.objects.close();
      cluster.fault = () => {};
      const next = await Replica.start(cluster, clock, successor);
      const live = await next.open();
      await clock.advance(200 * second);
      assert.deepEqual(names(), [live.id], `after call ${last}, by ${successor}`);
      assert.deepEqual([leaseNames(), live.ends], [[`${server}/drawbridge-gateway-${successor}`], []]);
      next.objects.end(namespace, live);
      await clock.advance(second);
      await next.crash();
      await next.objects.close();
      replica = await Replica.start(cluster, clock, 'one');
      return calls;
    };
    const calls = await crashAt(Number.POSITIVE_INFINITY, 'two');
    assert.ok(calls >= 8, `${calls}`);
    for (let last = 0; last <= calls; last++) for (const successor of ['one', 'two']) await crashAt(last, successor);
  });

  it('restore the Lease that another client deleted', async () => {
    const session = await replica.open();
    await clock.advance(second);
    cluster.drop(leases, { namespace: server, name: 'drawbridge-gateway-one' });
    await clock.advance(second);
    assert.deepEqual([leaseNames().length, session.ends], [1, []]);
  });

  const identities: readonly [string, string][] = [
    ['drawbridge-gateway-6c8bd-x2x4z-1', 'drawbridge-gateway-6c8bd-x2x4z-1'],
    ['Host_1.example', 'host-1-example'],
    ['-.-', 'replica'],
    ['x'.repeat(300), 'x'.repeat(200)],
  ];
  for (const [identity, name] of identities)
    it(`name the replica ${name.slice(0, 40)} for the identity ${identity.slice(0, 40)}`, () =>
      assert.equal(replicaName(identity), name));
});

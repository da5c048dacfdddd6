import assert from 'node:assert/strict';
import type { LeaderGate } from '../../../src/engine/leader-gate.ts';
import { Manager } from '../../../src/engine/manager.ts';
import type { Runnable } from '../../../src/engine/supervisor.ts';
import { noLog } from '../../../src/observe/log.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

interface Scripted extends Runnable {
  sync(): void;
  fail(error: unknown): void;
  /** Settles a stopping run. */
  letGo(): void;
}

/** Stops what a test has set up. */
const cleanUp: (() => Promise<unknown>)[] = [];

function setUp() {
  const clock = new SimulatedClock();
  const events: string[] = [];
  const failures: unknown[] = [];
  const log = {
    ...noLog,
    error: (_: string, fields?: { readonly error?: unknown }) => void failures.push(fields?.error),
  };
  const manager = new Manager({ clock, log, drainMs: 5000, random: () => 0.5 });
  const controller = (name: string, { syncs = true, drains = true } = {}): Scripted => {
    let current = { sync: () => {}, end: Promise.withResolvers<void>() };
    return {
      name,
      async run(signal, onSynced) {
        events.push(`${name} starts`);
        const end = Promise.withResolvers<void>();
        current = { sync: onSynced, end };
        signal.addEventListener('abort', () => {
          events.push(`${name} stops`);
          if (drains) end.resolve();
        });
        if (syncs) onSynced();
        await end.promise;
        events.push(`${name} ended`);
      },
      sync: () => current.sync(),
      fail: (error) => current.end.reject(error),
      letGo: () => current.end.resolve(),
    };
  };
  const gate = (name: string) => {
    let lead: ((signal: AbortSignal) => Promise<void>) | undefined;
    let term: AbortController | undefined;
    const released = Promise.withResolvers<void>();
    const it: LeaderGate = {
      name,
      get leading() {
        return term?.signal.aborted === false;
      },
      async run(given, signal) {
        lead = given;
        signal.addEventListener('abort', () => released.resolve());
        await released.promise;
        term?.abort();
        await running;
        events.push(`${name} released`);
      },
    };
    let running: Promise<void> = Promise.resolve();
    return {
      gate: it,
      win: () => {
        term = new AbortController();
        running = lead?.(term.signal) ?? Promise.resolve();
      },
      lose: () => {
        term?.abort();
        return running;
      },
    };
  };
  const states = () => Object.fromEntries(manager.status().map(({ name, state }) => [name, state]));
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  /** Runs the manager. */
  const start = async (): Promise<void> => {
    running = manager.run(stop.signal);
    await clock.settle();
  };
  const end = (): Promise<void> => {
    stop.abort();
    return running ?? Promise.resolve();
  };
  cleanUp.push(end);
  /** Runs these controllers behind a gate, which is won. */
  const startLeading = async (...controllers: Runnable[]) => {
    const lease = gate('lease');
    for (const one of controllers) manager.add(one, lease.gate);
    await start();
    lease.win();
    await clock.settle();
    return lease;
  };
  return { clock, events, failures, manager, controller, gate, states, start, startLeading, end };
}

describe('Manager', () => {
  afterEach(() => Promise.all(cleanUp.splice(0).map((end) => end())));

  it('starts controllers in the order of adding, each once the previous one has synced', async () => {
    const t = setUp();
    const [a, b] = [t.controller('a', { syncs: false }), t.controller('b')];
    t.manager.add(a);
    t.manager.add(b);
    await t.start();
    assert.deepEqual(t.states(), { a: 'syncing', b: 'waiting' });
    a.sync();
    await t.clock.settle();
    assert.deepEqual(t.states(), { a: 'running', b: 'running' });
    await t.end();
    assert.deepEqual(t.states(), { a: 'stopped', b: 'stopped' });
  });

  it('stops them in reverse order, each once the previous one has settled', async () => {
    const t = setUp();
    for (const name of ['a', 'b', 'c']) t.manager.add(t.controller(name));
    await t.start();
    t.events.length = 0;
    await t.end();
    assert.deepEqual(t.events, ['c stops', 'c ended', 'b stops', 'b ended', 'a stops', 'a ended']);
  });

  it('runs gated controllers only while leading, and the others always', async () => {
    const t = setUp();
    const lease = t.gate('lease');
    t.manager.add(t.controller('everywhere'));
    t.manager.add(t.controller('leader'), lease.gate);
    await t.start();
    assert.deepEqual(t.states(), { everywhere: 'running', leader: 'waiting' });
    lease.win();
    await t.clock.settle();
    assert.deepEqual(t.states(), { everywhere: 'running', leader: 'running' });
    await lease.lose();
    assert.deepEqual(t.states(), { everywhere: 'running', leader: 'waiting' });
    lease.win();
    await t.clock.settle();
    assert.deepEqual(t.states(), { everywhere: 'running', leader: 'running' });
  });

  it('aborts all gated work at the moment the gate is lost, and keeps the gate until all has settled', async () => {
    const t = setUp();
    const [a, b] = [t.controller('a', { drains: false }), t.controller('b', { drains: false })];
    const lease = await t.startLeading(a, b);
    let settled = false;
    const lost = lease.lose().then(() => {
      settled = true;
    });
    assert.deepEqual(t.events.slice(-2), ['a stops', 'b stops']);
    a.letGo();
    await t.clock.settle();
    assert.equal(settled, false);
    b.letGo();
    await lost;
  });

  for (const [cause, end] of [
    ['the gate is lost', 'lose'],
    ['the manager stops', 'stop'],
  ] as const) {
    it(`starts no waiting controller after ${cause}`, async () => {
      const t = setUp();
      const lease = await t.startLeading(t.controller('a', { syncs: false }), t.controller('b'));
      if (end === 'lose') await lease.lose();
      await t.end();
      assert.ok(!t.events.includes('b starts'));
    });
  }

  it('drains before it releases the gate', async () => {
    const t = setUp();
    await t.startLeading(t.controller('a'));
    await t.end();
    assert.deepEqual(t.events.slice(-3), ['a stops', 'a ended', 'lease released']);
  });

  it('restarts a failed controller with backoff, and logs the reason', async () => {
    const t = setUp();
    const a = t.controller('a');
    t.manager.add(a);
    await t.start();
    a.fail(new Error('watch is forbidden'));
    await t.clock.settle();
    assert.deepEqual(t.states(), { a: 'restarting' });
    await t.clock.advance(499);
    assert.equal(t.states()['a'], 'restarting');
    await t.clock.advance(1);
    await t.clock.settle();
    assert.deepEqual(t.states(), { a: 'running' });
    a.letGo();
    await t.clock.settle();
    assert.deepEqual(t.failures, ['watch is forbidden', 'the run ended although nothing stopped it']);
  });

  it('adds and removes controllers while it runs; a later one neither waits nor blocks', async () => {
    const t = setUp();
    const stuck = t.controller('stuck', { syncs: false });
    t.manager.add(stuck);
    t.manager.add(t.controller('next'));
    await t.start();
    const late = t.controller('late', { syncs: false });
    const later = t.controller('later');
    t.manager.add(late);
    t.manager.add(later);
    assert.throws(() => t.manager.add(later), { code: 'AlreadyAdded' });
    await t.clock.settle();
    assert.deepEqual(t.states(), { stuck: 'syncing', next: 'waiting', late: 'syncing', later: 'running' });
    await t.manager.remove(later);
    await t.manager.remove(stuck);
    await t.clock.settle();
    assert.deepEqual(t.states(), { next: 'running', late: 'syncing' });
    assert.ok(t.events.includes('later ended'));
  });

  it('acquires a gate that is added while it runs', async () => {
    const t = setUp();
    await t.start();
    const lease = t.gate('late lease');
    t.manager.add(t.controller('a'), lease.gate);
    lease.win();
    await t.clock.settle();
    assert.deepEqual(t.states(), { a: 'running' });
  });

  it('retries a failed gate', async () => {
    const t = setUp();
    let tries = 0;
    t.manager.add(t.controller('a'), {
      name: 'lease',
      leading: true,
      run: (lead, signal) => {
        tries += 1;
        return tries === 1 ? Promise.reject(new Error('forbidden')) : lead(signal);
      },
    });
    await t.start();
    await t.clock.advance(1000);
    assert.equal(t.states()['a'], 'running');
  });

  it('stops draining at its deadline and names the controllers that did not stop', async () => {
    const t = setUp();
    t.manager.add(t.controller('good'));
    t.manager.add(t.controller('hanging', { drains: false }));
    await t.start();
    const rejected = assert.rejects(t.end(), { code: 'DrainDeadlineExceeded', message: /hanging/ });
    await t.clock.advance(5000);
    await rejected;
    cleanUp.length = 0;
    assert.ok(t.events.includes('good stops'), 'the others are stopped anyway');
  });
});

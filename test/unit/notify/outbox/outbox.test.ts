import assert from 'node:assert/strict';
import type { Delivery } from '../../../../src/notify/facts/deliveries-of.ts';
import { Outbox, type OutboxState, type Pending, settledAfterMs } from '../../../../src/notify/outbox/outbox.ts';
import type { Answer } from '../../../../src/notify/sink.ts';
import { deliveryOf, factOf } from '../../../support/notify/facts.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

const empty: OutboxState = { floorMs: -1, told: new Map(), refs: new Map(), pending: [] };
const outboxWith = (deliveries: readonly Delivery[], nowMs = 0): Outbox => {
  const outbox = new Outbox(empty, nowMs, () => 0.5);
  for (const delivery of deliveries) assert.ok(outbox.offer(delivery, nowMs));
  return outbox;
};
const about = (name: string, over: Parameters<typeof factOf>[0] = {}, rest: Partial<Delivery> = {}): Delivery =>
  deliveryOf(factOf({ name, ...over }), rest);
const many = (count: number, prefix = 'r', over: Parameters<typeof factOf>[0] = {}): Delivery[] =>
  Array.from({ length: count }, (_, i) => about(`${prefix}${i}`, over));

const ok: Answer = { delivered: true, said: 'ok' };
const failed = (code: 'Refused' | 'Unreachable', retryAfterMs?: number): Answer => ({
  ...{ delivered: false, code, said: code },
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});

/** Takes the next message; the names of its requests. */
const take = (outbox: Outbox, nowMs: number): readonly Pending[] => {
  const next = outbox.next('p-1', nowMs);
  if (typeof next !== 'object') return [];
  outbox.took('p-1', nowMs);
  return next;
};
const names = (sent: readonly Pending[]): string => sent.map(({ fact }) => fact.request.name).join(' ');
const deliver = (outbox: Outbox, nowMs: number): string => {
  const sent = take(outbox, nowMs);
  if (sent.length > 0) outbox.settle(sent, ok, nowMs);
  return names(sent);
};

interface Turn {
  readonly what: string;
  readonly offered: readonly Delivery[];
  /** The names of each message, in order. */
  readonly sent: readonly string[];
}

const turns: readonly Turn[] = [
  { what: 'five of a namespace alone, oldest first', offered: many(5), sent: ['r0', 'r1', 'r2', 'r3', 'r4'] },
  { what: 'six together', offered: many(6), sent: ['r0 r1 r2 r3 r4 r5'] },
  { what: 'a hundred at most together', offered: many(101), sent: [names100(), 'r100'] },
  {
    what: 'no two namespaces together',
    offered: [...many(3, 'a', { namespace: 'shop' }), ...many(6, 'b', { namespace: 'payments' })],
    sent: ['a0', 'a1', 'a2', 'b0 b1 b2 b3 b4 b5'],
  },
  {
    what: 'emergencies first, and alone',
    offered: [...many(6), about('now', { event: 'emergency', namespace: 'shop' })],
    sent: ['now', 'r0 r1 r2 r3 r4 r5'],
  },
  {
    what: 'six emergencies together',
    offered: [...many(1), ...many(6, 'e', { event: 'emergency' })],
    sent: ['e0 e1 e2 e3 e4 e5', 'r0'],
  },
  {
    what: 'one address each',
    offered: many(8).map((one, i) => ({ ...one, to: i % 2 ? 'alice@example.com' : 'bob@example.com' })),
    sent: ['r0', 'r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7'],
  },
];

function names100(): string {
  return Array.from({ length: 100 }, (_, i) => `r${i}`).join(' ');
}

describe('an outbox', () => {
  for (const { what, offered, sent } of turns) {
    it(`sends ${what}`, () => {
      const outbox = outboxWith(offered);
      assert.deepEqual(
        sent.map(() => deliver(outbox, 0)),
        sent,
      );
      assert.equal(outbox.next('p-1', 0), undefined);
    });
  }

  it('sends ten at once, then one a second', () => {
    const outbox = outboxWith(many(12).map((one, i) => ({ ...one, to: `${i}@example.com` })));
    for (let i = 0; i < 10; i++) assert.equal(deliver(outbox, 0), `r${i}`);
    assert.equal(outbox.next('p-1', 0), 1000);
    assert.equal(deliver(outbox, 1000), 'r10');
    assert.equal(outbox.next('p-1', 1500), 2000);
  });

  it('repeats after 5 s, 30 s, 2 min, 10 min, and then each hour', () => {
    const outbox = outboxWith([about('a')]);
    let nowMs = 0;
    const delays = [1, 2, 3, 4, 5, 6].map(() => {
      outbox.settle(take(outbox, nowMs), failed('Refused'), nowMs);
      const next = outbox.next('p-1', nowMs);
      assert.ok(typeof next === 'number');
      const delayMs = next - nowMs;
      nowMs = next;
      return delayMs;
    });
    assert.deepEqual(delays, [5 * second, 30 * second, 2 * minute, 10 * minute, hour, hour]);
  });

  it('varies delays by a fifth', () => {
    const delayWith = (random: number) => {
      const outbox = new Outbox(empty, 0, () => random);
      outbox.offer(about('a'), 0);
      outbox.settle(take(outbox, 0), failed('Refused'), 0);
      return outbox.next('p-1', 0);
    };
    assert.deepEqual([delayWith(0), delayWith(1)], [4 * second, 6 * second]);
  });

  it('sends nothing until the time that the sink named, which is no attempt', () => {
    const outbox = outboxWith([about('a')]);
    outbox.settle(take(outbox, 0), failed('Refused', minute), 0);
    outbox.offer(about('b'), 1);
    assert.equal(outbox.next('p-1', 1), minute);
    outbox.settle(take(outbox, minute), failed('Refused'), minute);
    assert.equal(outbox.pendingOf('p-1').find(({ attempts }) => attempts === 1)?.fact.request.name, 'a');
    outbox.settle(take(outbox, minute), failed('Refused', 48 * hour), minute);
    assert.equal(outbox.next('p-1', minute), minute + hour);
  });

  it('counts an attempt of each in a refused digest', () => {
    const outbox = outboxWith(many(6));
    outbox.settle(take(outbox, 0), failed('Refused'), 0);
    assert.deepEqual(
      outbox.pending.map(({ attempts, dueMs }) => [attempts, dueMs]),
      Array(6).fill([1, 5000]),
    );
  });

  it('sends all at once after an edit of the provider', () => {
    const outbox = outboxWith([about('a')]);
    outbox.settle(take(outbox, 0), failed('Refused', hour), 0);
    outbox.release('p-1', 1);
    assert.equal(deliver(outbox, 1), 'a');
  });

  it('gives up after a day', () => {
    const outbox = outboxWith([about('a'), about('b', { atMs: hour })]);
    assert.equal(outbox.nextExpiryMs('p-1'), 24 * hour);
    assert.deepEqual(outbox.expire('p-1', 24 * hour - 1), []);
    assert.equal(names(outbox.expire('p-1', 24 * hour)), 'a');
    assert.equal(names(outbox.pending), 'b');
  });

  it('drops what became moot, but no session', () => {
    const session = { name: 's', user: 'alice', stream: 'exec', recording: 'Off' };
    const kept = factOf({ name: 'a', event: 'granted' });
    const outbox = outboxWith([
      about('a', { event: 'requested' }),
      deliveryOf(kept),
      about('a', { event: 'session.started', session }),
      about('b'),
    ]);
    assert.deepEqual(
      outbox.keepOnly('a', new Set([kept.id])).map(({ fact }) => fact.event),
      ['requested'],
    );
    assert.deepEqual(
      outbox.pending.map(({ fact }) => fact.event),
      ['granted', 'session.started', 'requested'],
    );
  });

  it('knows what is pending and what was told', () => {
    const outbox = outboxWith([about('a'), about('b')]);
    deliver(outbox, 0);
    assert.deepEqual(
      [about('a'), about('b'), about('c')].map((one) => outbox.knows(one)),
      [true, true, false],
    );
  });

  it('keeps where a message is, for the next of its request', () => {
    const outbox = outboxWith([about('a'), about('a', { event: 'granted' }), about('b')]);
    outbox.settle(take(outbox, 0), { ...ok, ref: 'ts-1' }, 0);
    assert.deepEqual(
      outbox.pending.map((pending) => outbox.refOf(pending)),
      ['ts-1', undefined],
    );
    assert.equal(outbox.stateAt(25 * hour).refs.size, 0);
  });

  it('keeps room for other namespaces, however many providers one namespace has', () => {
    const outbox = new Outbox(empty, 0, () => 0.5);
    const reason = 'x'.repeat(8_000);
    let offered = 0;
    const fill = (namespace: string): void => {
      for (let i = 0; i < 2_000; i++) {
        const provider = { key: `${namespace}/${i}`, uid: `${namespace}-${i % 10}`, type: 'Teams' as const };
        if (outbox.offer(about(`${namespace}${i}`, { reason }, { provider }), 0)) offered += reason.length;
      }
    };
    fill('bad');
    assert.ok(offered < 2.5 * 2 ** 20);
    for (const namespace of ['worse', 'worst']) fill(namespace);
    assert.ok(offered < 5 * 2 ** 20);
    assert.equal(
      outbox.offer(about('mine', { reason }, { provider: { key: 'my/chat', uid: 'my', type: 'Teams' } }), 0),
      true,
    );
  });

  it('has the same content after a restart', () => {
    const outbox = outboxWith([about('a'), about('b'), about('c')]);
    deliver(outbox, 0);
    outbox.settle(take(outbox, 0), failed('Refused'), 0);
    const stored = structuredClone(outbox.stateAt(minute));
    const after = new Outbox(stored, minute, () => 0.5);
    assert.deepEqual(
      [about('a'), about('b'), about('c')].map((one) => after.knows(one)),
      [true, true, true],
    );
    assert.deepEqual(
      after.pending.map(({ fact, attempts }) => [fact.request.name, attempts]),
      [
        ['b', 1],
        ['c', 0],
      ],
    );
  });

  it('forgets what was told once no restart finds it again', () => {
    const outbox = outboxWith([about('a'), about('extension', {}, { settledMs: 10 * hour })]);
    deliver(outbox, 0);
    deliver(outbox, 0);
    assert.equal(outbox.stateAt(settledAfterMs - 1).told.size, 2);
    const state = outbox.stateAt(settledAfterMs + 1);
    assert.deepEqual([state.floorMs, state.told.size], [1, 1]);
    assert.equal(outbox.stateAt(11 * hour).told.size, 0);
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Attempts } from '../../../../src/binding/sync/attempts.ts';
import { DeleteBreaker } from '../../../../src/binding/sync/delete-breaker.ts';
import { Problems } from '../../../../src/binding/sync/problems.ts';
import { StatusPace } from '../../../../src/binding/sync/status-pace.ts';

const never = Number.POSITIVE_INFINITY;

describe('pace of status writes', () => {
  it('writes the first at once and then one in 300 ms a key', () => {
    const pace = new StatusPace();
    assert.equal(pace.waitMs('a', 1_000), 0);
    pace.wrote('a', 1_000);
    assert.equal(pace.waitMs('a', 1_000), 300);
    assert.equal(pace.waitMs('a', 1_299), 1);
    assert.equal(pace.waitMs('a', 1_300), 0);
    assert.equal(pace.waitMs('b', 1_000), 0);
  });

  it('makes five writes of a hundred changes in a second, the last one among them', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(999), { minLength: 100, maxLength: 100 }), (instants) => {
        const pace = new StatusPace();
        const writes: number[] = [];
        let dueMs = never;
        const due = [...instants].sort((a, b) => a - b);
        for (let nowMs = 0; nowMs < 2_000; nowMs++) {
          if (due[0] !== nowMs && dueMs !== nowMs) continue;
          while (due[0] === nowMs) due.shift();
          const waitMs = pace.waitMs('a', nowMs);
          if (waitMs > 0) {
            dueMs = nowMs + waitMs;
            continue;
          }
          pace.wrote('a', nowMs);
          writes.push(nowMs);
          dueMs = never;
        }
        assert.ok(writes.length <= 5, `${writes}`);
        assert.ok((writes.at(-1) ?? 0) >= Math.max(...instants));
      }),
      { seed: 14 },
    );
  });
});

describe('attempts', () => {
  const attempts = (): Attempts => new Attempts(() => 0.5);

  it('backs off what fails, up to the cap', () => {
    const made = attempts();
    const waits: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 12; i++) {
      const waitMs = made.failed('k', 'update', 'x', nowMs, 30_000);
      assert.equal(made.waitMs('k', 'update', 'x', nowMs), waitMs);
      waits.push(waitMs);
      nowMs += waitMs;
    }
    assert.deepEqual(waits.slice(0, 4), [75, 150, 300, 600]);
    assert.equal(Math.max(...waits), 22_500);
    assert.ok(made.failed('k', 'update', 'x', nowMs, 5_000) <= 5_000);
  });

  it('lets another write out at once, and other actions and keys', () => {
    const made = attempts();
    made.failed('k', 'update', 'x', 0, 30_000);
    assert.equal(made.waitMs('k', 'update', 'y', 0), 0);
    assert.equal(made.waitMs('k', 'mark', 'x', 0), 0);
    assert.equal(made.waitMs('l', 'update', 'x', 0), 0);
    assert.ok(made.failed('k', 'update', 'y', 0, 30_000) > 75, 'the row of failures goes on');
  });

  it('slows down a write that somebody undoes again and again', () => {
    const made = attempts();
    const waits: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 9; i++) {
      made.succeeded('k', 'update', 'x', nowMs);
      const waitMs = made.waitMs('k', 'update', 'x', nowMs);
      waits.push(waitMs);
      nowMs += waitMs;
    }
    assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('does not repeat what had no effect, until it is another or asked for anew', () => {
    const made = attempts();
    const long = 'x'.repeat(1_000);
    made.futile('k', 'status', long, 0);
    assert.equal(made.waitMs('k', 'status', long, 1e9), never);
    assert.equal(made.waitMs('k', 'status', `${long}y`, 0), 0);
    made.clear();
    assert.equal(made.waitMs('k', 'status', long, 0), 0);
  });

  it('brings failures back at once after an outage, nothing else', () => {
    const made = attempts();
    made.failed('k', 'create', 'x', 0, 30_000);
    made.succeeded('k', 'update', 'x', 0);
    made.retryNow('k');
    assert.deepEqual([made.waitMs('k', 'create', 'x', 0), made.waitMs('k', 'update', 'x', 0)], [0, 500]);
  });
});

describe('breaker of deletes', () => {
  const ask = (breaker: DeleteBreaker, count: number, nowMs: number, from = 0): number[] =>
    Array.from({ length: count }, (_, i) => breaker.ask(`k${from + i}`, nowMs));

  it('lets a few go, after the time in which others would show', () => {
    const breaker = new DeleteBreaker();
    assert.deepEqual(new Set(ask(breaker, 19, 0)), new Set([1_000]));
    assert.deepEqual(new Set(ask(breaker, 19, 1_000)), new Set([0]));
    assert.equal(breaker.held, 0);
  });

  it('holds back twenty at once', () => {
    const breaker = new DeleteBreaker();
    assert.equal(ask(breaker, 20, 0).at(-1), never);
    assert.deepEqual(new Set(ask(breaker, 20, 5_000)), new Set([never]));
    assert.equal(breaker.held, 20);
  });

  it('holds back the twentieth of a minute, not one later', () => {
    const fed = (gapMs: number): number => {
      const breaker = new DeleteBreaker();
      for (let i = 0; i < 20; i++) {
        breaker.ask(`k${i}`, i * gapMs);
        if (breaker.ask(`k${i}`, i * gapMs + 1_000) === never) return i;
        breaker.deleted(`k${i}`, i * gapMs + 1_000);
      }
      return never;
    };
    assert.equal(fed(2_000), 19);
    assert.equal(fed(4_000), never);
  });

  it('goes on when all objects are back, not when some are', () => {
    const breaker = new DeleteBreaker();
    ask(breaker, 25, 0);
    for (let i = 0; i < 24; i++) breaker.dropped(`k${i}`);
    assert.equal(breaker.ask('k24', 5_000), never);
    breaker.dropped('k24');
    assert.equal(breaker.ask('k99', 6_000), 1_000);
  });

  it('lets go what was held back when it is allowed, and counts what comes later anew', () => {
    const breaker = new DeleteBreaker();
    ask(breaker, 30, 0);
    assert.equal(breaker.allow().length, 30);
    assert.deepEqual(new Set(ask(breaker, 30, 10)), new Set([0]));
    for (let i = 0; i < 30; i++) breaker.deleted(`k${i}`, 20);
    assert.deepEqual(new Set(ask(breaker, 19, 30, 100)), new Set([1_000]));
    assert.equal(ask(breaker, 1, 30, 119)[0], never);
    assert.deepEqual(new DeleteBreaker().allow(), []);
  });
});

describe('problems', () => {
  it('are told worst first, and not without end', () => {
    let told = 0;
    const problems = new Problems(() => told++);
    for (let i = 0; i < 12; i++) problems.set(`team/k${i % 10}${i}`, { rank: 'refused', message: 'taken' });
    problems.set('team/z', { rank: 'forbidden', message: 'no rights' });
    assert.equal(problems.set('team/z', { rank: 'forbidden', message: 'no rights' }), false);
    assert.equal(told, 13);
    const list = problems.list('kettles');
    assert.equal(list[0], 'kettles team/z: no rights');
    assert.deepEqual([list.length, list.at(-1)], [11, 'and 3 more of kettles']);
    problems.clear('team/z');
    problems.clear('team/z');
    assert.equal(told, 14);
  });
});

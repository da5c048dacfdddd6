import assert from 'node:assert/strict';
import fc from 'fast-check';
import { DeadlineHeap } from '../../../src/kit/deadline-heap.ts';

describe('DeadlineHeap', () => {
  it('pops due keys, earliest first, and equal times in the order in which they were set', () => {
    const heap = new DeadlineHeap<string>();
    heap.set('c', 3);
    heap.set('a', 1);
    heap.set('a2', 1);
    heap.set('z', 9);
    assert.deepEqual(heap.popDue(3), ['a', 'a2', 'c']);
    assert.equal(heap.peek()?.key, 'z');
    assert.equal(heap.size, 1);
  });

  it('moves a key that is set again, both ways', () => {
    const heap = new DeadlineHeap<string>();
    for (const [key, at] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ] as const)
      heap.set(key, at);
    heap.set('a', 10);
    heap.set('c', 0);
    assert.deepEqual(heap.popDue(100), ['c', 'b', 'a']);
  });

  it('behaves like a sorted list of keys', () => {
    const command = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), key: fc.nat(30), at: fc.nat(50) }),
      fc.record({ kind: fc.constant('delete' as const), key: fc.nat(30), at: fc.constant(0) }),
      fc.record({ kind: fc.constant('pop' as const), key: fc.constant(0), at: fc.nat(50) }),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 200, size: 'max' }), (commands) => {
        const heap = new DeadlineHeap<number>();
        let model: { key: number; at: number }[] = [];
        const without = (key: number) => model.filter((entry) => entry.key !== key);
        for (const { kind, key, at } of commands) {
          if (kind === 'set') {
            heap.set(key, at);
            model = [...without(key), { key, at }];
          } else if (kind === 'delete') {
            assert.equal(
              heap.delete(key),
              model.some((entry) => entry.key === key),
            );
            model = without(key);
          } else {
            const due = model.filter((entry) => entry.at <= at).sort((a, b) => a.at - b.at);
            assert.deepEqual(
              heap.popDue(at),
              due.map((entry) => entry.key),
            );
            model = model.filter((entry) => entry.at > at);
          }
          assert.equal(heap.size, model.length);
          assert.equal(heap.peek()?.at, model.length === 0 ? undefined : Math.min(...model.map((entry) => entry.at)));
          for (const entry of model) assert.equal(heap.get(entry.key), entry.at);
        }
      }),
      { seed: 20261121 },
    );
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { DeadlineHeap } from '../../../src/kit/deadline-heap.ts';
import { pluck } from '../../support/pluck.ts';

describe('DeadlineHeap', () => {
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
            const isThere = model.some((entry) => entry.key === key);
            assert.equal(heap.delete(key), isThere);
            model = without(key);
          } else {
            const due = model.filter((entry) => entry.at <= at).sort((a, b) => a.at - b.at);
            assert.deepEqual(heap.popDue(at), pluck(due, 'key'));
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

import assert from 'node:assert/strict';
import { mergePatched } from '../../../src/kit/merge-patch.ts';

describe('a merge patch', () => {
  const cases: [string, unknown, unknown, unknown][] = [
    ['sets and keeps', { a: 1, b: 2 }, { b: 3, c: { d: 4 } }, { a: 1, b: 3, c: { d: 4 } }],
    ['merges objects', { a: { b: 1, c: 2 } }, { a: { b: 3 } }, { a: { b: 3, c: 2 } }],
    ['removes with null, at any depth', { a: { b: 1, c: 2 } }, { a: { b: null, x: null } }, { a: { c: 2 } }],
    ['replaces lists', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['puts objects where something else was', { a: 'b' }, { a: { c: 1, d: null } }, { a: { c: 1 } }],
    ['creates missing objects', undefined, { a: 1 }, { a: 1 }],
    ['is the value itself when it is no object', { a: 1 }, 'b', 'b'],
  ];
  for (const [what, target, patch, expected] of cases) {
    it(what, () => {
      const before = structuredClone(target);
      assert.deepEqual(mergePatched(target, patch), expected);
      assert.deepEqual(target, before);
    });
  }

  it('changes no prototype', () => {
    const merged = mergePatched({}, JSON.parse('{"__proto__": {"polluted": true}}'));
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
    assert.equal(Object.getPrototypeOf(merged), Object.prototype);
  });
});

import assert from 'node:assert/strict';
import { sameJson } from '../../../src/kit/json-value.ts';

const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
};

describe('sameJson', () => {
  it('compares by content', () => {
    assert.equal(sameJson({ a: [1, { b: null }] }, { a: [1, { b: null }] }), true);
    assert.equal(sameJson({ a: [1] }, { a: [2] }), false);
  });

  it('treats values as different if they are nested too deep to compare', () => {
    assert.equal(sameJson(nested(100_000), nested(100_000)), false);
  });
});

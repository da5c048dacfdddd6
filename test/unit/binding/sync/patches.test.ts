import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isSame, mergePatch } from '../../../../src/binding/sync/patches.ts';
import { isRecord, type JsonObject } from '../../../../src/kit/json-value.ts';
import { runs } from '../../../support/runs.ts';

/** Applies a patch as in RFC 7386, section 2. Like API servers, it also drops null members inside arrays. */
function apply(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return pruned(patch);
  const members = new Map(Object.entries(isRecord(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name);
    else members.set(name, apply(members.get(name), value));
  }
  return Object.fromEntries(members);
}

function pruned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pruned);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => [name, pruned(member)]),
  );
}

const names = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', '');
const json = fc.letrec<{ value: unknown; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, 1, '', 'x'),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc
    .array(fc.tuple(names, tie('value')), { maxLength: 4 })
    .map((members) => Object.fromEntries(members) as JsonObject),
}));

describe('merge patch', () => {
  const cases: [string, unknown, unknown, unknown][] = [
    ['nothing for equal values', { a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, undefined],
    ['null for a removed field', { a: 1, b: 2 }, { a: 1 }, { b: null }],
    ['null for a removed field deep inside', { a: { b: 1, c: 2 } }, { a: { c: 2 } }, { a: { b: null } }],
    ['an array as a whole', { a: [1, 2, 3] }, { a: [1, 3] }, { a: [1, 3] }],
    ['an object in place of an array', { a: [1] }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['an object that has become empty', { a: { b: 1 } }, { a: {} }, { a: { b: null } }],
    ['an empty object that is new', {}, { a: {} }, { a: {} }],
    ['nothing for a null that was absent', {}, { a: null }, undefined],
    ['null for a field that became null', { a: 1 }, { a: null }, { a: null }],
    ['null for a removed whole', { a: 1 }, undefined, null],
    ['the whole if there was none', undefined, { a: 1 }, { a: 1 }],
    ['nothing between absent and null', undefined, null, undefined],
    ['nothing for nulls inside of arrays', { a: [{ b: null }] }, { a: [{}] }, undefined],
  ];
  for (const [title, from, to, patch] of cases) {
    it(`contains ${title}`, () => assert.deepEqual(mergePatch(from, to), patch));
  }

  it('turns any old value into any wanted one', () => {
    fc.assert(
      fc.property(json.object, json.object, (from, to) => {
        const patch = mergePatch(from, to);
        const sent: unknown = patch === undefined ? undefined : JSON.parse(JSON.stringify(patch));
        const result = sent === undefined ? from : apply(from, sent);
        assert.ok(isSame(result, to), JSON.stringify({ from, to, patch, result }));
        assert.equal(mergePatch(result, to), undefined, 'nothing is left to patch');
      }),
      { numRuns: runs(4000), seed: 11 },
    );
  });

  it('is empty exactly for equal values', () => {
    fc.assert(
      fc.property(json.value, json.value, (a, b) => {
        assert.equal(mergePatch(a, b) === undefined, isSame(a, b));
        assert.equal(isSame(a, b), isSame(b, a));
        assert.ok(isSame(a, structuredClone(a)));
      }),
      { numRuns: runs(2000), seed: 12 },
    );
  });
});

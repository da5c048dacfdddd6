import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { foreignChange } from '../../../../src/inventory/policy/component-write.ts';
import { isWithin, type JsonPointer, pointerOf } from '../../../../src/kit/json-pointer.ts';
import { isRecord } from '../../../../src/kit/json-value.ts';
import { runs } from '../../../support/runs.ts';

const name = fc.constantFrom('a', 'b', 'ab', 'a/b', 'a~b', '__proto__', 'constructor', '');
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<unknown>(null, 0, 'x', [], [1]),
    fc.uniqueArray(fc.tuple(name, tie('tree')), { maxLength: 4, selector: ([key]) => key }).map(Object.fromEntries),
  ),
}));
const document = fc
  .uniqueArray(fc.tuple(name, tree), { maxLength: 4, selector: ([key]) => key })
  .map(Object.fromEntries);
const segment = fc.constantFrom('a', 'b', 'ab', 'a/b', 'constructor');
const owned = fc.array(
  fc.tuple(segment, fc.array(segment, { maxLength: 2 })).map(([first, rest]) => pointerOf(first, ...rest)),
  { minLength: 1, maxLength: 3 },
);

/** All values that are not objects, and all empty objects, by path. */
function leaves(value: unknown, path: readonly string[] = []): Map<string, unknown> {
  if (!isRecord(value) || Object.keys(value).length === 0) return new Map([[JSON.stringify(path), value]]);
  return new Map(Object.entries(value).flatMap(([key, child]) => [...leaves(child, [...path, key])]));
}

const pointerTo = (path: string): JsonPointer | undefined => {
  const [first, ...rest] = JSON.parse(path) as string[];
  return first === undefined ? undefined : pointerOf(first, ...rest);
};

describe('a change outside the owned paths', () => {
  it('is found exactly if a value outside differs', () => {
    fc.assert(
      fc.property(document, document, owned, (before, after, writes) => {
        const isOwned = (path: string): boolean => {
          const pointer = pointerTo(path);
          return pointer !== undefined && writes.some((write) => isWithin(pointer, write));
        };
        // An empty object on the way to an owned path may be added or removed with it.
        const isOnTheWay = (path: string, value: unknown): boolean => {
          const pointer = pointerTo(path);
          return isRecord(value) && (pointer === undefined || writes.some((write) => isWithin(write, pointer)));
        };
        const [was, is] = [leaves(before), leaves(after)];
        const differs = [...new Set([...was.keys(), ...is.keys()])].some(
          (path) =>
            !isOwned(path) &&
            !isDeepStrictEqual(was.get(path), is.get(path)) &&
            ![was, is].every((side) => !side.has(path) || isOnTheWay(path, side.get(path))),
        );
        assert.equal(foreignChange(before, after, writes) !== undefined, differs);
      }),
      { seed: 1, numRuns: runs(5000) },
    );
  });

  it('is never found in an unchanged document', () => {
    fc.assert(
      fc.property(document, owned, (same, writes) => {
        assert.equal(foreignChange(same, structuredClone(same), writes), undefined);
      }),
      { seed: 2, numRuns: runs(2000) },
    );
  });
});

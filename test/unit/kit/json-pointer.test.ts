import assert from 'node:assert/strict';
import { isPointer, isWithin, overlap, pointerOf, pointerSegments, valueAt } from '../../../src/kit/json-pointer.ts';

describe('JSON pointers', () => {
  for (const wrong of ['', '/', 'spec', '/spec/', '//spec', '/a~2', '/a~']) {
    it(`do not include ${JSON.stringify(wrong)}`, () => assert.equal(isPointer(wrong), false));
  }

  it('unescape their escapes', () => {
    const pointer = pointerOf('spec', 'a/b', '~1');
    assert.equal(pointer, '/spec/a~1b/~01');
    assert.deepEqual(pointerSegments(pointer), ['spec', 'a/b', '~1']);
  });

  it('contain one another by whole segments', () => {
    assert.equal(isWithin('/a/b', '/a'), true);
    assert.equal(isWithin('/ab', '/a'), false);
    assert.equal(isWithin('/a', '/a/b'), false);
    assert.equal(overlap('/a', '/a/b'), true);
    assert.equal(overlap('/a/b', '/a/c'), false);
  });

  it('find only own fields of objects', () => {
    const document: unknown = JSON.parse('{"spec": {"cluster": {"region": "eu"}, "list": [1], "null": null}}');
    assert.equal(valueAt(document, '/spec/cluster/region'), 'eu');
    assert.equal(valueAt(document, '/spec/null'), null);
    for (const absent of ['/spec/list/0', '/spec/constructor', '/spec/cluster/region/length', '/status'] as const) {
      assert.equal(valueAt(document, absent), undefined, absent);
    }
  });
});

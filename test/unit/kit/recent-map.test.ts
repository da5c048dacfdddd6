import assert from 'node:assert/strict';
import { RecentMap } from '../../../src/kit/recent-map.ts';

describe('RecentMap', () => {
  it('drops the key that was set longest ago', () => {
    const map = new RecentMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3).set('c', 4);
    assert.deepEqual(
      [...map],
      [
        ['a', 3],
        ['c', 4],
      ],
    );
  });

  it('keeps all keys below its limit', () => {
    const map = new RecentMap<string, number>(2).set('a', 1).set('b', 2).set('b', 3);
    assert.deepEqual([map.get('a'), map.get('b'), map.size], [1, 3, 2]);
  });
});

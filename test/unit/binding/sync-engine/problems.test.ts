import assert from 'node:assert/strict';
import { Problems } from '../../../../src/binding/sync-engine/problems.ts';

describe('problems', () => {
  it('are listed worst first, up to a maximum', () => {
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

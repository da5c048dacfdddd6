import assert from 'node:assert/strict';
import { Deletions } from '../../../../src/binding/claims/deletions.ts';

describe('deletions', () => {
  const deletions = new Deletions();
  const leave = (key: string, uid = key): void =>
    deletions.observe(key, { type: 'deleted', key, before: { key, uid, resourceVersion: '1' } });

  it('are bounded, and forget the oldest first', () => {
    leave('again', 'first');
    leave('oldest');
    leave('again', 'second');
    for (let i = 0; i < 9_999; i++) leave(`key-${i}`);
    assert.equal(deletions.get('oldest'), undefined);
    assert.deepEqual(deletions.get('again'), { uid: 'second', wasObserved: true });
    leave('one-more');
    assert.equal(deletions.get('again'), undefined);
    assert.ok(deletions.get('key-0'));
  });
});

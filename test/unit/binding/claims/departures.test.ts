import assert from 'node:assert/strict';
import { Deletions } from '../../../../src/binding/claims/deletions.ts';

describe('departures', () => {
  const departures = new Deletions();
  const leave = (key: string, uid = key): void =>
    departures.observe(key, { type: 'deleted', key, before: { key, uid, resourceVersion: '1' } });

  it('do not grow without end, and forget the oldest first', () => {
    leave('again', 'first');
    leave('oldest');
    leave('again', 'second');
    for (let i = 0; i < 9_999; i++) leave(`key-${i}`);
    assert.equal(departures.get('oldest'), undefined);
    assert.deepEqual(departures.get('again'), { uid: 'second', wasSeen: true });
    leave('one-more');
    assert.equal(departures.get('again'), undefined);
    assert.ok(departures.get('key-0'));
  });
});

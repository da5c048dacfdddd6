import assert from 'node:assert/strict';
import { FairShare } from '../../../src/kit/fair-share.ts';

describe('a budget that sources share', () => {
  let dropped: string[];
  const taker =
    (share: FairShare) =>
    (source: string, amount = 1, name = source): (() => void) | undefined =>
      share.acquire(source, amount, () => dropped.push(name));

  beforeEach(() => {
    dropped = [];
  });

  it('gives one source the whole budget, and not more', () => {
    const share = new FairShare({ total: 3 });
    const take = taker(share);
    for (let n = 0; n < 3; n++) assert.ok(take('a'));
    assert.equal(take('a'), undefined);
    assert.deepEqual([share.inUse, dropped], [3, []]);
  });

  it('gives one source at most its own limit, even with free space', () => {
    const share = new FairShare({ total: 10, perSource: 2 });
    const take = taker(share);
    assert.ok(take('a'));
    assert.ok(take('a'));
    assert.equal(take('a'), undefined);
    assert.ok(take('b'));
    assert.equal(share.inUse, 3);
  });

  it('evicts the oldest larger piece of a source that uses everything for its own smaller piece, and none for an equal one', () => {
    const take = taker(new FairShare({ total: 9 }));
    for (const name of ['small', 'large', 'larger']) take('a', name === 'small' ? 1 : 4, name);
    assert.equal(take('a', 4), undefined);
    assert.deepEqual(dropped, []);
    assert.ok(take('a', 1));
    assert.deepEqual(dropped, ['large']);
  });

  describe('evicts', () => {
    /** `a4`: source a takes 4. An asterisk marks a part in use. */
    const table: [title: string, total: number, held: string, newcomer: string, evicted: string[] | 'refused'][] = [
      ['nothing while there is space', 4, 'a1 a1 a1', 'b1', []],
      ['the oldest part of the source that holds the most', 4, 'b1 a1 a1 a1', 'c1', ['a0']],
      ['an idle part before an older one in use', 4, 'a1* a1* a1 a1', 'b1', ['a2']],
      ['the oldest of several idle parts', 4, 'a1* a1 a1* a1', 'b1', ['a1']],
      ['no idle part of a source that holds less', 5, 'b1 b1 a1* a1* a1*', 'c1', ['a0']],
      ['the oldest part if all are in use, or a flood of calls would keep others out', 3, 'a1* a1* a1*', 'b1', ['a0']],
      ['parts of several sources in turn', 12, 'a2 a2 a2 b2 b2 b2', 'c4', ['a0', 'b0']],
      ['nothing if that is not enough: the second source may not give as much', 10, 'a3 a3 b2 b2', 'c6', 'refused'],
      [
        'nothing if that is not enough: after one, the source would hold less than the newcomer',
        8,
        'a2 a2 a2 b2',
        'b3',
        'refused',
      ],
      ['nothing if that is not enough: the newcomer is too large', 4, 'a2 a2', 'b5', 'refused'],
      ['nothing of an equal source', 4, 'a1 a1 b1 b1', 'b1', 'refused'],
      ['a larger part of its own, whether in use or not', 4, 'a3* a1', 'a1', ['a0']],
    ];
    for (const [title, total, held, newcomer, evicted] of table) {
      it(title, () => {
        const share = new FairShare({ total });
        const counts = new Map<string, number>();
        const take = (part: string): boolean => {
          const [source = '', amount] = part;
          const count = counts.get(source) ?? 0;
          counts.set(source, count + 1);
          const isIdle = (): boolean => !part.endsWith('*');
          return share.acquire(source, Number(amount), () => dropped.push(`${source}${count}`), isIdle) !== undefined;
        };
        assert.ok(held.split(' ').every(take));
        const before = share.inUse;
        assert.equal(take(newcomer), evicted !== 'refused');
        assert.deepEqual(dropped, evicted === 'refused' ? [] : evicted);
        if (evicted === 'refused') assert.equal(share.inUse, before);
      });
    }
  });

  it('has space again for a released piece, once', () => {
    const share = new FairShare({ total: 2 });
    const take = taker(share);
    const first = take('a');
    take('a');
    first?.();
    first?.();
    assert.equal(share.inUse, 1);
    assert.ok(take('a'));
    assert.equal(take('a'), undefined);
  });

  it('does not release an evicted piece', () => {
    const share = new FairShare({ total: 2 });
    const take = taker(share);
    const oldest = take('a', 1, 'oldest');
    take('a');
    take('b');
    assert.deepEqual(dropped, ['oldest']);
    oldest?.();
    assert.equal(share.inUse, 2);
  });
});

import assert from 'node:assert/strict';
import type { Projected, StoreEvent } from '../../../src/kube/store.ts';
import { WriteThroughCache } from '../../../src/kube/write-through-cache.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const key = 'team-a/mug';
const trustMs = 10_000;
const version = (resourceVersion: number | string, uid = 'u1'): Projected => ({
  key,
  uid,
  resourceVersion: `${resourceVersion}`,
});

describe('write-through cache', () => {
  let clock: SimulatedClock;
  let watched: Projected | undefined;
  let cache: WriteThroughCache<Projected>;

  beforeEach(() => {
    clock = new SimulatedClock();
    watched = undefined;
    cache = new WriteThroughCache<Projected>({ watched: () => watched, uidOf: ({ uid }) => uid, trustMs, clock });
  });

  /** The cache gives the object of the watch, and waits for nothing newer. */
  const assertWatched = (): void => {
    assert.equal(cache.get(key), watched);
    assert.equal(cache.isAhead(key), false);
  };
  const answer = (object: Projected) => cache.call(key, () => Promise.resolve(object));

  /** The watch shows an object or its deletion. */
  function show(now: Projected | undefined): void {
    const before = watched;
    watched = now;
    let event: StoreEvent<Projected> | undefined;
    if (now) event = before ? { type: 'updated', key, before, now } : { type: 'added', key, now };
    else if (before) event = { type: 'deleted', key, before };
    if (event) cache.observe(event);
  }

  it('returns the object of the watch before any call', () => {
    assert.equal(cache.get(key), undefined);
    show(version(3));
    assertWatched();
  });

  it('returns an answer until the watch shows it', async () => {
    show(version(3));
    const written = await answer(version(5));
    assert.equal(cache.get(key), written);
    show(version(4));
    assert.equal(cache.get(key), written);
    assert.equal(cache.isAhead(key), true);
    show(version(5));
    assertWatched();
  });

  it('returns an answer about an object that the watch has not shown', async () => {
    const created = await answer(version(5));
    assert.equal(cache.get(key), created);
  });

  it('drops an answer that the watch has overtaken during the call', async () => {
    await cache.call(key, async () => {
      show(version(7));
      return version(5);
    });
    assertWatched();
  });

  it('drops an answer about an object whose deletion the watch has shown during the call', async () => {
    show(version(3));
    await cache.call(key, async () => {
      show(undefined);
      return version(5);
    });
    assert.equal(cache.get(key), undefined);
  });

  it('keeps the answer about a new object when the watch shows the deletion of the previous one', async () => {
    show(version(3));
    const created = await cache.call(key, async () => {
      show(undefined);
      return version(6, 'u2');
    });
    assert.equal(cache.get(key), created);
  });

  it('keeps the newer of two answers that arrive out of order', async () => {
    let late: (object: Projected) => void = () => undefined;
    const first = cache.call(key, () => new Promise<Projected>((resolve) => (late = resolve)));
    const second = await answer(version(6));
    late(version(5));
    assert.deepEqual(await first, version(5));
    assert.equal(cache.get(key), second);
  });

  it('prefers the watch if two versions have no order', async () => {
    show(version('opaque'));
    await answer(version(5));
    assert.equal(cache.get(key), watched);
  });

  it('uses an answer only for a limited time', async () => {
    show(version(3));
    const written = await answer(version(5));
    await clock.advance(trustMs - 1);
    assert.equal(cache.get(key), written);
    await clock.advance(1);
    // Before `get`, which drops the answer itself.
    assert.equal(cache.isAhead(key), false);
    assertWatched();
  });

  it('keeps its object if a call fails', async () => {
    const written = await answer(version(5));
    const failing = cache.call(key, () => Promise.reject(new Error('refused')));
    await assert.rejects(failing, /refused/);
    assert.equal(cache.get(key), written);
  });

  describe('of deleted objects', () => {
    it('reports an accepted delete until the watch shows the deletion', () => {
      show(version(3));
      cache.deleting(key, 'u1');
      assert.equal(cache.isDeleting(key, 'u1'), true);
      assert.equal(cache.isDeleting(key, 'u2'), false);
      assert.equal(cache.isAhead(key), true);
      show(undefined);
      assert.equal(cache.isDeleting(key, 'u1'), false);
      assert.equal(cache.isAhead(key), false);
    });

    it('reports an accepted delete only for a limited time', async () => {
      show(version(3));
      cache.deleting(key, 'u1');
      await clock.advance(trustMs);
      assert.equal(cache.isDeleting(key, 'u1'), false);
    });

    it('hides a deleted object, but not the next one of its name', async () => {
      show(version(3));
      await answer(version(5));
      cache.deleted(key, 'u1');
      assert.equal(cache.get(key), undefined);
      await clock.advance(trustMs);
      assert.equal(cache.get(key), undefined);
      show(version(9, 'u2'));
      assert.equal(cache.get(key), watched);
    });
  });

  describe('after forget', () => {
    it('uses the watch again', async () => {
      show(version(3));
      await answer(version(5));
      cache.deleting(key, 'u1');
      cache.forget(key);
      assertWatched();
    });

    it('drops the answer of a pending call, but not of a later one', async () => {
      await cache.call(key, async () => {
        cache.forget(key);
        return version(5);
      });
      assert.equal(cache.get(key), undefined);
      const later = await answer(version(6));
      assert.equal(cache.get(key), later);
    });

    it('forgets all keys at once', async () => {
      show(version(3));
      await cache.call(key, async () => {
        cache.deleted(key, 'u1');
        cache.clear();
        return version(5);
      });
      assert.equal(cache.get(key), watched);
    });
  });
});

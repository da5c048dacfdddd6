import assert from 'node:assert/strict';
import {
  changedReviews,
  type OwedReview,
  OwedReviews,
  reviewsName,
  reviewsSpec,
} from '../../../../src/access/emergency/owed-reviews.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { pluck } from '../../../support/pluck.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { MemoryCluster } from '../lifecycle/memory-cluster.ts';

const namespace = 'drawbridge-system';
const hour = 3_600_000;

describe('reviews that emergencies owe', () => {
  let clock: SimulatedClock;
  let cluster: MemoryCluster;
  const { signal } = new AbortController();
  let reviews: OwedReviews;
  let review: OwedReview;
  const open = (): OwedReviews => {
    const { store } = cluster.watch(reviewsSpec(namespace));
    return new OwedReviews({ store, client: cluster.client, namespace, clock });
  };
  beforeEach(() => {
    clock = new SimulatedClock();
    cluster = new MemoryCluster(clock);
    reviews = open();
    review = {
      user: 'alice',
      userUid: 'u-1',
      namespace: 'payments',
      templateKind: 'PodAccessTemplate',
      template: 'payments-shell',
      templateUid: 't-1',
      templateGeneration: 1,
      requestKind: 'PodAccessRequest',
      request: 'debug',
      requestUid: 'r-1',
      reviewBy: formatTime(clock.now() + hour),
    };
  });
  const of = (over: object = {}) => ({
    user: { username: 'alice', uid: 'u-1' },
    namespace: 'payments',
    templateKind: 'PodAccessTemplate' as const,
    template: 'payments-shell',
    ...over,
  });
  const entries = (): Record<string, string> =>
    (cluster.find(configMaps, { namespace, name: reviewsName }) as { data?: Record<string, string> })?.data ?? {};
  const store = (data: Record<string, string>): void => {
    cluster.put(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name: reviewsName },
      data,
    } as KubeObject);
  };

  it('are in one ConfigMap, which the first of them creates, and another process reads', async () => {
    await reviews.add(review, signal);
    await reviews.add({ ...review, requestUid: 'r-2', request: 'again' }, signal);
    assert.deepEqual(reviews.of('r-1'), review);
    assert.deepEqual(pluck(open().list(), 'request'), ['debug', 'again']);
  });

  it('are gone once they were made', async () => {
    await reviews.add(review, signal);
    await reviews.remove('r-1', signal);
    assert.equal(reviews.of('r-1'), undefined);
    assert.deepEqual(entries(), {});
  });

  it('block the same person and template once they are overdue', async () => {
    await reviews.add(review, signal);
    assert.equal(reviews.overdueOf(of()), undefined);
    await clock.advance(hour);
    assert.equal(reviews.overdueOf(of())?.request, 'debug');
    assert.equal(reviews.overdue().length, 1);
    assert.ok(
      reviews.overdueOf(of({ user: { username: 'alice-admin', uid: 'u-1' } })),
      'a second name of the same uid',
    );
    for (const other of [
      { user: { username: 'bob', uid: 'u-2' } },
      { namespace: 'shop' },
      { template: 'other' },
      { templateKind: 'ExecAccessTemplate' },
    ]) {
      assert.equal(reviews.overdueOf(of(other)), undefined, JSON.stringify(other));
    }
  });

  it('do not take people without a uid for one person', async () => {
    await reviews.add({ ...review, userUid: '' }, signal);
    await clock.advance(hour);
    assert.equal(reviews.overdueOf(of({ user: { username: 'bob', uid: '' } })), undefined);
  });

  it('are found by the name of their request, or by its uid if that is known', async () => {
    await reviews.add(review, signal);
    const name = { namespace: 'payments', name: 'debug' };
    assert.equal(reviews.find('PodAccessRequest', name, undefined)?.requestUid, 'r-1');
    assert.equal(reviews.find('PodAccessRequest', name, 'r-1')?.requestUid, 'r-1');
    assert.equal(reviews.find('PodAccessRequest', name, 'r-2'), undefined);
    assert.equal(reviews.find('ExecAccessRequest', name, undefined), undefined);
  });

  it('count only for the request under whose uid they are', async () => {
    await reviews.add(review, signal);
    const text = entries()['r-1'] ?? '';
    store({ 'r-9': text, 'r-3': 'no JSON', 'r-4': '[]' });
    assert.deepEqual(open().list(), []);
  });

  it('are not recorded if the API server does not answer', async () => {
    cluster.fault = ({ plural }) => {
      if (plural === 'configmaps') throw new Error('away');
    };
    await assert.rejects(reviews.add(review, signal), /away/);
    assert.equal(reviews.of('r-1'), undefined);
  });

  it('name the requests that a change concerns', () => {
    const view = (data: Record<string, string>) => ({
      key: 'k',
      uid: 'c-1',
      resourceVersion: '1',
      namespace,
      name: reviewsName,
      entries: data,
    });
    const [before, now] = [view({ a: '1', b: '1' }), view({ b: '1', c: '1' })];
    assert.deepEqual(changedReviews({ type: 'updated', key: 'k', before, now }), ['a', 'c']);
    assert.deepEqual(changedReviews({ type: 'added', key: 'k', now }), ['b', 'c']);
    assert.deepEqual(changedReviews({ type: 'deleted', key: 'k', before }), ['a', 'b']);
  });
});

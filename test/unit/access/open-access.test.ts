import assert from 'node:assert/strict';
import { admissionReads } from '../../../src/access/admission-reads.ts';
import type { OwedReviews } from '../../../src/access/emergency/owed-reviews.ts';
import type { GrantQuota } from '../../../src/access/lifecycle/grant-quota.ts';
import type { AccessStores } from '../../../src/access/stores/access-stores.ts';
import type { Grant } from '../../../src/api/access/grant.ts';
import { formatTime } from '../../../src/kit/clock.ts';
import type { Client } from '../../../src/kube/client.ts';
import { grantOf, podRequestManifest } from '../../support/access-objects.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const minute = 60_000;

describe('the access of a request, as an extension needs it', () => {
  const clock = new SimulatedClock();
  const podEndMs = clock.now() + 90 * minute;
  const { openAccess } = admissionReads({
    stores: { pods: { get: () => ({ deadlineMs: podEndMs }) } } as unknown as AccessStores,
    client: {} as Client,
    quota: {} as GrantQuota,
    reviews: {} as OwedReviews,
    clock,
  });
  const startMs = clock.now() - 10 * minute;
  const grant = grantOf({
    startsAt: formatTime(startMs),
    expiresAt: formatTime(startMs + 30 * minute),
  }) as unknown as Grant;
  const extension = { by: '10m', state: 'Granted', expiresAt: formatTime(startMs + 40 * minute) };
  const request = (status: object, metadata: object = {}, spec: object = {}) => {
    const manifest = podRequestManifest(spec as Record<string, unknown>);
    const creationTimestamp = formatTime(startMs - 5 * minute);
    return {
      ...manifest,
      metadata: { ...manifest.metadata, uid: 'r-1', resourceVersion: '1', creationTimestamp, ...metadata },
      status,
    };
  };

  it('begins and ends as granted and extended', () => {
    const access = openAccess('PodAccessRequest', request({ grant, extensions: [extension] }));
    const endMs = startMs + 40 * minute;
    assert.deepEqual(access, { startMs, endMs, decided: 1, granted: 1, emergency: false, podEndMs });
  });

  const expired = { ...grant, expiresAt: formatTime(clock.now()) };
  const failed = { type: 'AccessResourcesCreated', status: 'False', reason: 'NameCollision', message: 'taken' };
  for (const [what, object] of [
    ['granted', request({})],
    ['open any more', request({ grant: expired })],
    ['open, because it is being deleted', request({ grant }, { deletionTimestamp: formatTime(clock.now()) })],
    ['open, because it is revoked', request({ grant }, {}, { revoked: true })],
    [
      'open, because it could not be opened',
      request({ grant, conditions: [{ ...failed, lastTransitionTime: formatTime(clock.now()) }] }),
    ],
    ['an object', undefined],
  ] as const) {
    it(`is absent if it is not ${what}`, () => assert.equal(openAccess('PodAccessRequest', object), undefined));
  }
});

import assert from 'node:assert/strict';
import { accessStartMs, extendableOf } from '../../../../src/access/lifecycle/request-ends.ts';
import { accessEndMs, type RequestView } from '../../../../src/access/stores/access-views.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import type { ExtensionStatus } from '../../../../src/api/access/status.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { createdAtMs, requestView } from '../../../support/request-views.ts';

const minute = 60_000;
const at = (minutes: number): string => formatTime(createdAtMs + minutes * minute);
const grant = { ...grantOf(), expiresAt: at(30) } as Grant;
const extended = (...minutes: number[]): ExtensionStatus[] =>
  minutes.map((until) => ({ by: '10m', state: 'Granted', expiresAt: at(until) }));
const ended = (over: Partial<RequestView>): string | undefined => {
  const endMs = accessEndMs(requestView({ grant, ...over }));
  return endMs === undefined ? undefined : formatTime(endMs);
};

describe('the time of access', () => {
  it('begins with its request, unless the grant says when', () => {
    assert.equal(accessStartMs(requestView()), createdAtMs);
    assert.equal(accessStartMs(requestView({ grant })), createdAtMs);
    assert.equal(accessStartMs(requestView({ grant: { ...grant, startsAt: at(10) } })), createdAtMs + 10 * minute);
  });

  it('ends as granted', () => assert.equal(ended({}), at(30)));
  it('has no end without a grant', () => assert.equal(ended({ grant: undefined }), undefined));
  it('ends with the last extension', () => assert.equal(ended({ extensions: extended(40, 50) }), at(50)));

  it('ends at an earlier end of its request', () =>
    assert.equal(ended({ ended: { at: at(20), how: 'Revoked', reason: 'Revoked', keptUntil: at(60) } }), at(20)));

  it('is not moved by refused and pending extensions', () => {
    const [first, third] = extended(40, 60) as [ExtensionStatus, ExtensionStatus];
    const refused: ExtensionStatus = { by: '10m', state: 'Denied', message: 'no' };
    const pending: ExtensionStatus = { by: '10m', state: 'Pending' };
    assert.equal(ended({ extensions: [first, refused, pending] }), at(40));
    assert.equal(ended({ extensions: [first, refused, third] }), at(60));
    const pods = { get: () => undefined };
    assert.deepEqual(extendableOf(requestView({ grant, extensions: [first, refused, pending] }), pods), {
      startMs: createdAtMs,
      endMs: createdAtMs + 40 * minute,
      decided: 2,
      granted: 1,
      emergency: false,
      podEndMs: undefined,
    });
  });
});

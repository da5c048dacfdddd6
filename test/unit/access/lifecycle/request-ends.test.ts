import assert from 'node:assert/strict';
import { accessEndMs, accessStartMs, extendableOf } from '../../../../src/access/lifecycle/request-ends.ts';
import { Signer } from '../../../../src/access/signing/signer.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import type { ExtensionStatus } from '../../../../src/api/access/status.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { createdAtMs, requestView } from '../../../support/request-views.ts';
import { ringOf, signerOf } from '../../../support/signers.ts';

const minute = 60_000;
const at = (minutes: number): string => formatTime(createdAtMs + minutes * minute);
const signer = signerOf('ours');
const grant = { ...grantOf(), expiresAt: at(30) } as Grant;
const decided = (index: number, extension: Omit<ExtensionStatus, 'by'>): ExtensionStatus =>
  signer.signExtension(requestView(), grant, index, { by: '10m', ...extension });
const extended = (...minutes: number[]): ExtensionStatus[] =>
  minutes.map((until, index) => decided(index, { state: 'Granted', expiresAt: at(until) }));
const ended = (over: Partial<RequestView>, by = signer): string | undefined => {
  const endMs = accessEndMs(requestView({ grant, ...over }), by);
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

  const [first, second] = extended(40, 50) as [ExtensionStatus, ExtensionStatus];
  for (const [what, extensions, until] of [
    ['without a MAC', [{ by: '10m', state: 'Granted', expiresAt: at(40) }], 30],
    ['with another end than was signed', [{ ...first, expiresAt: at(400) }], 30],
    ['in another place', [second], 30],
    ['twice', [first, first], 40],
    ['after one that is not ours', [{ ...first, by: '11m' }, second], 30],
  ] as const) {
    it(`ignores an extension ${what}`, () => assert.equal(ended({ extensions }), at(until)));
  }

  it('is not moved by refused and pending extensions', () => {
    const refused = decided(1, { state: 'Refused', message: 'no' });
    const pending: ExtensionStatus = { by: '10m', state: 'Pending' };
    assert.equal(ended({ extensions: [first, refused, pending] }), at(40));
    const third = decided(2, { state: 'Granted', expiresAt: at(60) });
    assert.equal(ended({ extensions: [first, refused, third] }), at(60));
    const pods = { get: () => undefined };
    assert.deepEqual(extendableOf(requestView({ grant, extensions: [first, refused, pending] }), signer, pods), {
      startMs: createdAtMs,
      endMs: createdAtMs + 40 * minute,
      decided: 2,
      granted: 1,
      emergency: false,
      podEndMs: undefined,
    });
  });

  it('ignores the extension of another request or grant', () => {
    const [extension] = extended(40);
    assert.ok(extension);
    assert.equal(ended({ extensions: [extension], uid: 'r-2' }), at(30));
    assert.equal(ended({ extensions: [extension], grant: { ...grant, planHash: 'other' } }), at(30));
  });

  it('trusts extensions until the keys are read, because a due end does not wait for keys', () => {
    assert.equal(ended({ extensions: extended(40) }, new Signer(ringOf(undefined))), at(40));
    assert.equal(ended({ extensions: extended(40) }, signerOf('theirs')), at(30));
  });
});

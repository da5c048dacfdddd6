import assert from 'node:assert/strict';
import { RequesterAttestations, retainUntilMs } from '../../../../src/access/lifecycle/requester-attestations.ts';
import { Signer } from '../../../../src/access/signing/signer.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { createdAtMs, requestView } from '../../../support/request-views.ts';
import { ringOf, signerOf } from '../../../support/signers.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const { signal } = new AbortController();
const kind = 'PodAccessRequest';

describe('the stamp of a request', () => {
  const signer = signerOf('ours');
  const clock = new SimulatedClock();
  const stampsOf = (by: Signer = signer): RequesterAttestations =>
    new RequesterAttestations({ kind, signer: by, clock });
  const codeOf = async (attestations: RequesterAttestations, request: RequestView): Promise<string | undefined> =>
    (await attestations.violation(request, signal))?.code;

  /** Stamped `afterMs` before it was created. */
  const stamped = (afterMs = 0, over: Partial<RequestView> = {}): RequestView => {
    const request = requestView(over);
    const requester = { username: 'alice', uid: '', groups: ['devs'], time: formatTime(createdAtMs - afterMs) };
    const seal = signer.signRequester({ kind, ...request, requester });
    return { ...request, spec: { ...request.spec, requester: { ...requester, ...seal } } };
  };

  const ages: [number, string | undefined][] = [
    [-3000, 'StampExpired'],
    [-2000, undefined],
    [0, undefined],
    [10_000, undefined],
    [11_000, 'StampExpired'],
    [86_400_000, 'StampExpired'],
  ];
  for (const [ageMs, code] of ages) {
    it(`made ${ageMs} ms before the request is ${code ?? 'good'}`, async () => {
      assert.equal(await codeOf(stampsOf(), stamped(ageMs)), code);
    });
  }

  it('has to be there, whole', async () => {
    const request = stamped();
    const { requester } = request.spec;
    assert.ok(requester);
    const { nonce: _, ...noNonce } = requester;
    const { signature: __, ...noSignature } = requester;
    for (const part of [noNonce, noSignature]) {
      assert.equal(
        await codeOf(stampsOf(), { ...request, spec: { ...request.spec, requester: part } }),
        'StampMissing',
      );
    }
    assert.equal(await codeOf(stampsOf(), requestView()), 'StampMissing');
  });

  it('is good again and again for the uid that showed it first, and for no other', async () => {
    const attestations = stampsOf();
    const request = stamped();
    assert.equal(await codeOf(attestations, request), undefined);
    assert.equal(await codeOf(attestations, request), undefined);
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), 'StampReplayed');
    assert.equal(await codeOf(attestations, request), undefined);
  });

  it('belongs to a request from its first sight on, even if that is never decided', async () => {
    const attestations = stampsOf();
    attestations.observe(stamped());
    const request = stamped();
    attestations.observe(request);
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), 'StampReplayed');
  });

  it('cannot be taken away by a request that only copies the nonce', async () => {
    const attestations = stampsOf();
    const request = stamped();
    attestations.observe({ ...request, uid: 'r-2', name: 'thief' });
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2', name: 'thief' }), 'StampInvalid');
    assert.equal(await codeOf(attestations, request), undefined);
  });

  it('is remembered for a minute, and no longer', async () => {
    const attestations = stampsOf();
    const request = stamped();
    attestations.observe(request);
    await clock.advance(59_000);
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), 'StampReplayed');
    await clock.advance(2000);
    attestations.observe(stamped(0, { uid: 'r-3', name: 'other' }));
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), undefined);
  });

  it('is not judged without keys', async () => {
    await assert.rejects(codeOf(stampsOf(new Signer(ringOf(undefined))), stamped()), { code: 'SigningKeyUnavailable' });
  });

  it('holds its request until a copy of it would be too old, however much the clocks differ', () => {
    const holds: [RequestView, number][] = [
      [stamped(0), 11_000],
      [stamped(5000), 10_000],
      [stamped(-2000), 13_000],
      [stamped(-3_600_000), 13_000],
      [stamped(3_600_000), 10_000],
      [requestView(), 0],
    ];
    for (const [request, holdMs] of holds) assert.equal(retainUntilMs(request) - createdAtMs, holdMs);
  });
});

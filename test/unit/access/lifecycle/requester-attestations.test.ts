import assert from 'node:assert/strict';
import { finalizerUntilMs, RequesterAttestations } from '../../../../src/access/lifecycle/requester-attestations.ts';
import { Signer } from '../../../../src/access/signing/signer.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { createdAtMs, requestView } from '../../../support/request-views.ts';
import { ringOf, signerOf } from '../../../support/signers.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const { signal } = new AbortController();
const kind = 'PodAccessRequest';

describe('the attestation of a request', () => {
  const signer = signerOf('ours');
  const clock = new SimulatedClock();
  const attestationsOf = (by: Signer = signer): RequesterAttestations =>
    new RequesterAttestations({ kind, signer: by, clock });
  const codeOf = async (attestations: RequesterAttestations, request: RequestView): Promise<string | undefined> =>
    (await attestations.violation(request, signal))?.code;

  /** A request that was attested `afterMs` before it was created. */
  const attested = (afterMs = 0, over: Partial<RequestView> = {}): RequestView => {
    const request = requestView(over);
    const requester = { username: 'alice', uid: '', groups: ['devs'], time: formatTime(createdAtMs - afterMs) };
    const signature = signer.signRequester({ kind, ...request, requester });
    return { ...request, spec: { ...request.spec, requester: { ...requester, ...signature } } };
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
    it(`that is ${ageMs} ms older than the request is ${code ?? 'valid'}`, async () => {
      assert.equal(await codeOf(attestationsOf(), attested(ageMs)), code);
    });
  }

  it('must exist and be complete', async () => {
    const request = attested();
    const { requester } = request.spec;
    assert.ok(requester);
    const { nonce: _, ...noNonce } = requester;
    const { signature: __, ...noSignature } = requester;
    for (const part of [noNonce, noSignature]) {
      assert.equal(
        await codeOf(attestationsOf(), { ...request, spec: { ...request.spec, requester: part } }),
        'StampMissing',
      );
    }
    assert.equal(await codeOf(attestationsOf(), requestView()), 'StampMissing');
  });

  it('stays valid for the first uid that used it, and for no other', async () => {
    const attestations = attestationsOf();
    const request = attested();
    assert.equal(await codeOf(attestations, request), undefined);
    assert.equal(await codeOf(attestations, request), undefined);
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), 'StampReplayed');
    assert.equal(await codeOf(attestations, request), undefined);
  });

  it('belongs to a request from its first observation on, even if the request is never decided', async () => {
    const attestations = attestationsOf();
    attestations.observe(attested());
    const request = attested();
    attestations.observe(request);
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), 'StampReplayed');
  });

  it('cannot be used up by a request that copies only the nonce', async () => {
    const attestations = attestationsOf();
    const request = attested();
    attestations.observe({ ...request, uid: 'r-2', name: 'thief' });
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2', name: 'thief' }), 'StampInvalid');
    assert.equal(await codeOf(attestations, request), undefined);
  });

  it('is remembered for exactly a minute', async () => {
    const attestations = attestationsOf();
    const request = attested();
    attestations.observe(request);
    await clock.advance(59_000);
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), 'StampReplayed');
    await clock.advance(2000);
    attestations.observe(attested(0, { uid: 'r-3', name: 'other' }));
    assert.equal(await codeOf(attestations, { ...request, uid: 'r-2' }), undefined);
  });

  it('is not verified without keys', async () => {
    await assert.rejects(codeOf(attestationsOf(new Signer(ringOf(undefined))), attested()), {
      code: 'SigningKeyUnavailable',
    });
  });

  it('keeps its request until a copy of it would be too old, whatever the difference of the clocks', () => {
    const holds: [RequestView, number][] = [
      [attested(0), 11_000],
      [attested(5000), 10_000],
      [attested(-2000), 13_000],
      [attested(-3_600_000), 13_000],
      [attested(3_600_000), 10_000],
      [requestView(), 0],
    ];
    for (const [request, holdMs] of holds) assert.equal(finalizerUntilMs(request) - createdAtMs, holdMs);
  });
});

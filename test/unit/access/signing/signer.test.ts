import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import {
  GrantVerifier,
  grantPurpose,
  type KeyRing,
  Signer,
  type SigningKeys,
} from '../../../../src/access/signing/signer.ts';
import type { Ended } from '../../../../src/api/access/ended.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import type { ExtensionStatus } from '../../../../src/api/access/status.ts';
import { canonicalJson } from '../../../../src/kit/canonical-json.ts';
import { DerivedKeyPair } from '../../../../src/kit/ed25519.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { keyOf, ringOf, signerOf } from '../../../support/signers.ts';

const { signal } = new AbortController();
const requester = { username: 'alice', uid: '', groups: ['devs'], time: '2026-11-21T09:00:00Z' };
const attestation = {
  kind: 'PodAccessRequest',
  namespace: 'payments',
  name: 'debug',
  spec: { templateName: 'payments-shell', duration: '5m' },
  requester,
};
const owner = { namespace: 'payments', name: 'debug', uid: 'r-1' };
const grant = grantOf() as unknown as Grant;
const child = { requestUid: 'r-1', kind: 'Role', namespace: 'payments', name: 'debug-access', planHash: 'c0ffee' };

describe('a signer', () => {
  const signer = signerOf('ours');
  const signature = signer.signRequester(attestation);
  assert.ok(signature);

  it('creates a nonce for every attestation', () => {
    assert.notEqual(signer.signRequester(attestation)?.nonce, signature.nonce);
  });

  it('verifies its attestation after the requester is written into the spec', async () => {
    const stored = { ...attestation, spec: { ...attestation.spec, requester: { ...requester, ...signature } } };
    assert.equal(await signer.isOurRequester(stored, signature, signal), true);
    assert.equal(signer.isOurRequesterByCachedKeys(stored, signature), true);
  });

  for (const revoked of [true, false]) {
    it(`verifies its attestation if the request has revoked: ${revoked}`, async () => {
      const revokedLater = { ...attestation, spec: { ...attestation.spec, revoked } };
      assert.equal(await signer.isOurRequester(revokedLater, signature, signal), true);
      assert.equal(signer.isOurRequesterByCachedKeys(revokedLater, signature), true);
    });
  }

  it('rejects its grant if any field differs, by MAC and by signature', async () => {
    const session = { via: 'Gateway' };
    const full = { ...grant, session, startsAt: '2026-11-21T09:00:00Z', votes: ['v'] } as unknown as Grant;
    const signed = signer.signGrant(owner, full);
    const verifier = new GrantVerifier([new DerivedKeyPair(keyOf('ours'), grantPurpose).publicKey]);
    const verdicts = async (where: object, what: object) => {
      const [at, changed] = [{ ...owner, ...where }, { ...signed, ...what } as Grant];
      return [await signer.isOurGrant(at, changed, signal), verifier.isGrantOf(at, changed)];
    };
    assert.deepEqual(await verdicts({}, {}), [true, true]);
    for (const key of Object.keys(owner)) assert.deepEqual(await verdicts({ [key]: 'x' }, {}), [false, false], key);
    for (const key of Object.keys(full)) assert.deepEqual(await verdicts({}, { [key]: 'x' }), [false, false], key);
  });

  describe('of ends', () => {
    const ended: Ended = {
      at: '2026-11-21T09:30:00Z',
      how: 'Revoked',
      reason: 'VoteDenied',
      by: 'carol',
      until: '2026-11-22T09:30:00Z',
    };
    const request = { ...owner, grant };
    const signed = signer.signEnd(request, ended);

    it('verifies its own, of a request with and without a grant', async () => {
      assert.equal(await signer.isOurEnd(request, signed, signal), true);
      assert.equal(signer.isOurEndByCachedKeys(request, signed), true);
      assert.equal(signer.isOurEndByCachedKeys(owner, signer.signEnd(owner, ended)), true);
    });

    for (const over of [
      { at: ended.until },
      { how: 'Expired' },
      { reason: 'Expired' },
      { by: 'dave' },
      { by: undefined },
      { until: '2036-11-22T09:30:00Z' },
      { mac: undefined },
    ] as const) {
      it(`rejects one with ${JSON.stringify(over)}`, async () => {
        const { by, ...changed } = { ...signed, ...over };
        const forged = { ...changed, ...(by === undefined ? {} : { by }) } as Ended;
        assert.equal(await signer.isOurEnd(request, forged, signal), false);
      });
    }

    for (const field of ['namespace', 'name', 'uid'] as const) {
      it(`rejects one for another ${field}`, () =>
        assert.equal(signer.isOurEndByCachedKeys({ ...request, [field]: 'other' }, signed), false));
    }

    it('rejects one for another grant, for none, and by other keys', () => {
      const other = { ...grant, expiresAt: '2027-01-01T00:00:00Z' };
      assert.equal(signer.isOurEndByCachedKeys({ ...owner, grant: other }, signed), false);
      assert.equal(signer.isOurEndByCachedKeys(owner, signed), false);
      assert.equal(signerOf('others').isOurEndByCachedKeys(request, signed), false);
    });
  });

  describe('of changes', () => {
    const change = { field: 'extensions', index: 0, by: '30m', reason: 'INC-42' } as const;
    const signature = signer.signChange(owner, change);

    it('verifies its own', async () => assert.equal(await signer.isOurChange(owner, change, signature, signal), true));

    for (const [what, over] of [
      ['place', { index: 1 }],
      ['duration', { by: '31m' }],
      ['reason', { reason: 'INC-43' }],
    ] as const) {
      it(`rejects one for another ${what}`, async () => {
        assert.equal(await signer.isOurChange(owner, { ...change, ...over }, signature, signal), false);
      });
    }

    for (const field of ['namespace', 'name', 'uid'] as const) {
      it(`rejects one for another ${field}`, async () => {
        assert.equal(await signer.isOurChange({ ...owner, [field]: 'other' }, change, signature, signal), false);
      });
    }

    it('rejects a claim for an extension, and other keys', async () => {
      const claim = signer.signChange(owner, { field: 'claimed', time: '2026-11-22T20:00:00Z' });
      assert.equal(await signer.isOurChange(owner, change, claim, signal), false);
      assert.equal(
        await signer.isOurChange(owner, { field: 'claimed', time: '2026-11-22T20:00:00Z' }, signature, signal),
        false,
      );
      assert.equal(
        await signer.isOurChange(owner, change, signerOf('theirs').signChange(owner, change), signal),
        false,
      );
    });

    it('needs keys', () => assert.equal(new Signer(ringOf(undefined)).signChange(owner, change), undefined));
  });

  const changes: [string, object][] = [
    ['kind', { kind: 'ExecAccessRequest' }],
    ['namespace', { namespace: 'other' }],
    ['name', { name: 'other' }],
    ['spec', { spec: { ...attestation.spec, duration: '9h' } }],
    ['user', { requester: { ...requester, username: 'mallory' } }],
    ['uid', { requester: { ...requester, uid: '1' } }],
    ['groups', { requester: { ...requester, groups: ['devs', 'sre'] } }],
    ['time', { requester: { ...requester, time: '2026-11-21T09:00:01Z' } }],
  ];
  for (const [what, change] of changes) {
    it(`rejects its attestation for another ${what}`, async () => {
      assert.equal(await signer.isOurRequester({ ...attestation, ...change }, signature, signal), false);
    });
  }

  it('rejects an attestation with another nonce', async () => {
    assert.equal(await signer.isOurRequester(attestation, { ...signature, nonce: 'other' }, signal), false);
  });

  it('verifies its grant, and rejects a changed one, one of another request, and one without a MAC', async () => {
    const signed = signer.signGrant(owner, grant);
    const isOurs = (where: object, what: object): Promise<boolean> =>
      signer.isOurGrant({ ...owner, ...where }, { ...signed, ...what } as Grant, signal);
    assert.equal(await isOurs({}, {}), true);
    for (const where of [{ uid: 'r-2' }, { name: 'other' }, { namespace: 'other' }]) {
      assert.equal(await isOurs(where, {}), false, JSON.stringify(where));
    }
    for (const what of [{ expiresAt: '2099-01-01T00:00:00Z' }, { subjects: [] }, { mac: undefined }, { mac: 'x' }]) {
      assert.equal(await isOurs({}, what), false, JSON.stringify(what));
    }
  });

  it('verifies a grant from before signatures by its MAC alone', async () => {
    const { signature: _, ...before } = signer.signGrant(owner, grant);
    assert.equal(await signer.isOurGrant(owner, before, signal), true);
  });

  it('signs a grant so that a client with only the public key can verify it', () => {
    const { mac: _, signature = '', ...rest } = signer.signGrant(owner, grant);
    const x = new DerivedKeyPair(keyOf('ours'), grantPurpose).publicKey.toString('base64url');
    // With Node alone, as docs/tasks/signing-keys.md shows.
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const text = `drawbridge.dev/grant-signature/v1\n${canonicalJson({ ...owner, grant: rest })}`;
    assert.ok(verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url')));
    assert.notEqual(signerOf('other').signGrant(owner, grant).signature, signature);
  });

  describe('lets a client with only the public keys', () => {
    const publicKeyOf = (name: string) => new DerivedKeyPair(keyOf(name), grantPurpose).publicKey;
    const verifier = new GrantVerifier([publicKeyOf('other'), publicKeyOf('ours')]);
    const decision = { by: '30m', state: 'Granted', expiresAt: '2026-11-21T11:00:00Z' } as ExtensionStatus;
    const extension = signer.signExtension(owner, grant, 0, decision);

    it('verify a grant, and reject a changed one, one of another request, and one by other keys', () => {
      const signed = signer.signGrant(owner, grant);
      assert.equal(verifier.isGrantOf(owner, signed), true);
      assert.equal(verifier.isGrantOf({ ...owner, uid: 'r-2' }, signed), false);
      assert.equal(verifier.isGrantOf(owner, { ...signed, expiresAt: '2099-01-01T00:00:00Z' }), false);
      assert.equal(verifier.isGrantOf(owner, grant), false, 'without a signature');
      assert.equal(new GrantVerifier([publicKeyOf('other')]).isGrantOf(owner, signed), false);
      assert.equal(new GrantVerifier([]).isGrantOf(owner, signed), false);
    });

    it('verify an extension, and reject a changed one, and one of another place, grant, or request', () => {
      assert.equal(verifier.isExtensionOf(owner, grant, 0, extension), true);
      assert.equal(verifier.isExtensionOf(owner, grant, 1, extension), false);
      assert.equal(verifier.isExtensionOf({ ...owner, uid: 'r-2' }, grant, 0, extension), false);
      assert.equal(verifier.isExtensionOf(owner, { ...grant, planHash: 'x' }, 0, extension), false);
      assert.equal(verifier.isExtensionOf(owner, grant, 0, { ...extension, expiresAt: '2099-01-01T00:00:00Z' }), false);
      assert.equal(verifier.isExtensionOf(owner, grant, 0, decision), false, 'without a signature');
    });

    it('not use a signature of a grant for an extension', () => {
      const { signature } = signer.signGrant(owner, grant);
      assert.equal(
        verifier.isExtensionOf(owner, grant, 0, { ...decision, ...(signature ? { signature } : {}) }),
        false,
      );
    });
  });

  it('signs grants under the new key as soon as the keys are rotated', () => {
    let keys: SigningKeys = { current: keyOf('ours') };
    const rotated = new Signer({
      get keys() {
        return keys;
      },
      refresh: () => Promise.resolve(),
    });
    const before = rotated.signGrant(owner, grant).signature;
    assert.equal(before, rotated.signGrant(owner, grant).signature);
    keys = { current: keyOf('next'), previous: keyOf('ours') };
    const after = rotated.signGrant(owner, grant).signature;
    assert.notEqual(after, before);
    assert.equal(after, signerOf('next').signGrant(owner, grant).signature);
  });

  it('verifies its child, and rejects its MAC on another', async () => {
    const mac = signer.signChild(child);
    assert.equal(await signer.isOurChild(child, mac, signal), true);
    assert.equal(await signer.isOurChild({ ...child, kind: 'Pod' }, mac, signal), false);
    assert.equal(await signer.isOurChild({ ...child, requestUid: 'r-2' }, mac, signal), false);
  });

  it('reads the keys again before it rejects, because another replica may have newer ones', async () => {
    let [keys, reads]: [SigningKeys, number] = [{ current: keyOf('ours') }, 0];
    const ring: KeyRing = {
      get keys() {
        return keys;
      },
      refresh: async () => {
        reads++;
        keys = { current: keyOf('next'), previous: keyOf('ours') };
      },
    };
    const behind = new Signer(ring);
    const next = signerOf('next').signRequester(attestation);
    assert.ok(next);
    assert.equal(await behind.isOurRequester(attestation, next, signal), true);
    assert.equal(await behind.isOurRequester(attestation, signature, signal), true);
    assert.equal(reads, 1);
  });

  it('reads the keys once for many votes that it rejects', async () => {
    let reads = 0;
    const ring = { ...ringOf({ current: keyOf('ours') }), refresh: async () => void reads++ };
    const counting = new Signer(ring);
    const voter = { username: 'carol', uid: '', groups: ['devs'], time: '2026-11-21T09:00:00Z' };
    const votes = ['one', 'two', 'three'].map((name) => ({
      attestation: { namespace: 'payments', name, spec: { decision: 'Deny', voter }, voter },
    }));
    const signed = votes.map((vote) => ({ ...vote, signature: counting.signVote(vote.attestation) }));
    assert.deepEqual(await counting.areOurVotes(signed, signal), [true, true, true]);
    assert.equal(reads, 0);
    const [first, ...others] = signed;
    assert.ok(first);
    const forged = [first, ...others.map((vote) => ({ ...vote, signature: first.signature }))];
    assert.deepEqual(await counting.areOurVotes(forged, signal), [true, false, false]);
    assert.equal(reads, 1);
  });

  it('rejects nothing if the keys cannot be read again', async () => {
    const ring = { ...ringOf({ current: keyOf('ours') }), refresh: () => Promise.reject(new Error('away')) };
    await assert.rejects(
      new Signer(ring).isOurRequester(attestation, { ...signature, nonce: 'other' }, signal),
      /away/,
    );
  });

  it('neither signs nor verifies without keys', async () => {
    const keyless = new Signer(ringOf(undefined));
    assert.equal(keyless.hasKeys, false);
    assert.equal(keyless.signRequester(attestation), undefined);
    assert.equal(keyless.isOurRequesterByCachedKeys(attestation, signature), false);
    await assert.rejects(keyless.isOurRequester(attestation, signature, signal), { code: 'SigningKeyUnavailable' });
    assert.throws(() => keyless.signGrant(owner, grant), { code: 'SigningKeyUnavailable' });
  });
});

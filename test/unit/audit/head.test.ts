import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { HeadSigner, isSigned, parseHead, readHeads, type SignedHead } from '../../../src/audit/head.ts';

const signer = new HeadSigner(Buffer.alloc(32, 'one'));
const head = {
  chain: '0123456789abcdef01234567',
  seq: 7,
  hash: 'ab'.repeat(32),
  replica: 'drawbridge-0',
  time: '2026-11-21T09:00:00.000000Z',
};
const signed = signer.sign(head);

describe('heads of audit chains', () => {
  it('are signed by the same key for the same secret, and by another key for another secret', () => {
    assert.equal(new HeadSigner(Buffer.alloc(32, 'one')).publicKey, signer.publicKey);
    assert.notEqual(new HeadSigner(Buffer.alloc(32, 'two')).publicKey, signer.publicKey);
    assert.equal(signed.key, signer.publicKey);
  });

  it('verify with nothing but standard Ed25519 and the public key', () => {
    const { signature, ...rest } = signed;
    const sorted = Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
    const x = Buffer.from(signed.key, 'base64').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const text = `drawbridge.dev/audit-head/v1\n${JSON.stringify(sorted)}`;
    assert.ok(verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64')));
  });

  it('are read as they were signed', () => {
    assert.deepEqual(parseHead(JSON.stringify(signed)), signed);
    assert.ok(isSigned(signed));
    assert.ok(JSON.stringify(signed).length < 512);
  });

  const otherKey = new HeadSigner(Buffer.alloc(32, 'two')).publicKey;
  const changes: Partial<SignedHead>[] = [
    { seq: 8 },
    { hash: 'cd'.repeat(32) },
    { chain: '1123456789abcdef01234567' },
    { replica: 'drawbridge-1' },
    { time: '2026-11-21T09:00:00.000001Z' },
    { key: otherKey },
    { key: Buffer.alloc(32, 0xff).toString('base64') },
    { signature: Buffer.alloc(64).toString('base64') },
  ];
  for (const change of changes) {
    it(`do not verify with another ${Object.keys(change)[0]}`, () => assert.ok(!isSigned({ ...signed, ...change })));
  }

  const wrong = [{ seq: 0 }, { seq: '7' }, { chain: '../x' }, { key: 'short' }, { replica: 'x'.repeat(5000) }];
  const inherited = `{"__proto__":${JSON.stringify(signed)}}`;
  it('have no other form', () => {
    const texts = wrong.map((fields) => JSON.stringify({ ...signed, ...fields }));
    for (const text of [undefined, 7, '', 'null', '[]', '{', inherited, ...texts])
      assert.equal(parseHead(text), undefined, String(text));
  });

  it('are read from a ConfigMap, under the names of their chains', () => {
    const text = JSON.stringify(signed);
    const data = { [head.chain]: text, other: text, broken: '{' };
    assert.deepEqual(readHeads({ kind: 'ConfigMap', data }), { heads: [signed], unreadable: ['other', 'broken'] });
    for (const none of [undefined, {}, { data: [] }]) assert.deepEqual(readHeads(none), { heads: [], unreadable: [] });
  });
});

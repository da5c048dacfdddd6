import assert from 'node:assert/strict';
import fc from 'fast-check';
import { canonicalJson, sha256Hex } from '../../../src/kit/canonical-json.ts';

describe('canonicalJson', () => {
  it('sorts keys at every level and omits undefined values', () => {
    const value = { b: [{ z: 1, a: undefined, c: null }], a: 'x\n', '10': true, '9': 1.5, é: undefined };
    assert.equal(canonicalJson(value), '{"10":true,"9":1.5,"a":"x\\n","b":[{"c":null,"z":1}]}');
  });

  it('is the same for the same value in another order, and parses to that value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        const reordered = JSON.parse(text, (_, member: unknown) =>
          typeof member === 'object' && member !== null && !Array.isArray(member)
            ? Object.fromEntries(Object.entries(member).reverse())
            : member,
        );
        assert.equal(canonicalJson(reordered), text);
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
      }),
      { seed: 20261121 },
    );
  });
});

describe('sha256Hex', () => {
  it('hashes the UTF-8 bytes', () => {
    assert.equal(sha256Hex('é'), '4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c');
    assert.equal(sha256Hex(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });
});

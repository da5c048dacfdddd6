import assert from 'node:assert/strict';
import { refusalCause, unknownFieldsIn } from '../../../../src/access/policy/refusal-text.ts';

describe('why the API server rejects an object of a grant', () => {
  it('is its sentence, in one line without control characters, and at most 512 characters long', () => {
    const message = 'admission webhook "w" denied the request:\n\u001b[31mno \u202eshells';
    assert.equal(refusalCause(message), 'admission webhook "w" denied the request: [31mno shells');
    assert.equal(refusalCause('x'.repeat(5000)), `${'x'.repeat(511)}…`);
  });

  it('may be unknown fields', () => {
    const prefix = 'Pod in version "v1" cannot be handled as a Pod: ';
    const fields = 'unknown field "spec.a", unknown field "spec.b"';
    assert.equal(unknownFieldsIn(`${prefix}strict decoding error: ${fields}`), fields);
    assert.equal(unknownFieldsIn(`${prefix}json: cannot unmarshal`), undefined);
  });
});

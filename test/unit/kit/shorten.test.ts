import assert from 'node:assert/strict';
import { shorten } from '../../../src/kit/shorten.ts';

describe('a text with a limit', () => {
  it('stays if it fits, and otherwise ends with an ellipsis', () => {
    assert.equal(shorten('12345', 5), '12345');
    assert.equal(shorten('123456', 5), '1234…');
  });

  it('splits no surrogate pair', () => assert.equal(shorten('abc😀def', 5), 'abc…'));
});

import assert from 'node:assert/strict';
import { cutInTheMiddle, shorten } from '../../../src/kit/shorten.ts';

describe('a text with a limit', () => {
  it('stays if it fits, and otherwise ends with an ellipsis', () => {
    assert.equal(shorten('12345', 5), '12345');
    assert.equal(shorten('123456', 5), '1234…');
  });

  it('splits no surrogate pair', () => assert.equal(shorten('abc😀def', 5), 'abc…'));

  it('keeps its start and its end, if what to do is there', () => {
    assert.equal(cutInTheMiddle('123456789012', 12), '123456789012');
    assert.equal(cutInTheMiddle('1234567890123', 12), '1234 ... 123');
    assert.equal(cutInTheMiddle('123😀567890123', 12), '123 ... 123');
    const remedy = 'the gateway is absent; an administrator can install the gateway';
    assert.equal(cutInTheMiddle(remedy, 50), 'the gateway is ... can install the gateway');
  });
});

import assert from 'node:assert/strict';
import { CodedError, describe as describeError, quote } from '../../../src/kit/errors.ts';

describe('describe', () => {
  const cyclic = new Error('outer');
  cyclic.cause = cyclic;
  const hostile = {
    get message(): string {
      throw new Error('trap');
    },
  };
  const table: [string, unknown, string][] = [
    ['a message', new Error('broken'), 'broken'],
    ['the chain of causes', new Error('a', { cause: new Error('b', { cause: 'c' }) }), 'a: b: c'],
    ['a repeated cause', new Error('call failed: reset', { cause: new Error('reset') }), 'call failed: reset'],
    ['a circle of causes', cyclic, 'outer'],
    ['several failed attempts', new AggregateError([new Error('x'), new Error('y')]), 'x; y'],
    ['an error without a message', Object.assign(new Error(), { code: 'ECONNRESET' }), 'ECONNRESET'],
    ['an error without anything', new TypeError(), 'TypeError'],
    ['a string', 'thrown text', 'thrown text'],
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['an object with a message', { message: 'm', token: 'secret' }, 'm'],
    ['another object', { token: 'secret' }, 'an object that is not an Error'],
    ['something hostile', hostile, 'an error that cannot be described'],
  ];
  for (const [title, error, expected] of table) {
    it(`describes ${title}`, () => assert.equal(describeError(error), expected));
  }

  it('has a limited length', () => assert.equal(describeError(new Error('x'.repeat(10_000))).length, 2000));
});

describe('CodedError', () => {
  it('carries its code and cause', () => {
    const error = new CodedError('TooLate', 'the window has closed', { cause: 'x' });
    assert.deepEqual([error.code, error.message, error.cause], ['TooLate', 'the window has closed', 'x']);
  });
});

describe('quote', () => {
  it('escapes and shortens', () => {
    assert.equal(quote('a"\n'), '"a\\"\\n"');
    assert.equal(quote('x'.repeat(100), 3), '"xxx…"');
  });
});

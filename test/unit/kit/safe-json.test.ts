import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isRecord, own } from '../../../src/kit/json-value.ts';
import { JsonError, type JsonErrorCode, parseJson } from '../../../src/kit/safe-json.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { runs } from '../../support/runs.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'utf8');

function refusal(document: Uint8Array | string): JsonError {
  try {
    parseJson(typeof document === 'string' ? bytes(document) : document);
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
  return assert.fail('it was accepted');
}

const wide = (keys: number) => `{${Array.from({ length: keys }, (_, i) => `"k${i}":0`).join(',')}}`;

describe('parseJson', () => {
  const refused: [string, string | Uint8Array, JsonErrorCode, number | undefined][] = [
    ['65 levels of objects', `${'{"a":'.repeat(65)}0${'}'.repeat(65)}`, 'TooDeep', 320],
    ['10,000 levels of arrays', '['.repeat(10_000), 'TooDeep', 64],
    ['20,001 keys', wide(20_001), 'TooManyKeys', undefined],
    ['500,000 keys', wide(500_000), 'TooManyKeys', undefined],
    ['a key twice', '{"a":1,"b":2,"a":3}', 'DuplicateKey', 13],
    ['a key twice, once with escapes', '{"ab":1,"a\\u0062":3}', 'DuplicateKey', 8],
    ['a key twice beyond ASCII, once with escapes', '{"é😀":1,"\\u00e9\\ud83d\\ude00":3}', 'DuplicateKey', 12],
    ['a key twice in an inner object', '[{"x":{"a":1,"a":1}}]', 'DuplicateKey', 13],
    ['a key again after an inner object', '{"a":{"b":[{"c":1}]},"a":2}', 'DuplicateKey', 21],
    ['the empty key twice', '{"":1,"":2}', 'DuplicateKey', 6],
    ['__proto__', '{"x":{"__proto__":{"admin":true}}}', 'ForbiddenKey', 6],
    ['__proto__ with escapes', '{"\\u005f_proto_\\u005F":1}', 'ForbiddenKey', 1],
    ['a NUL byte', '{"a":"b\0"}', 'NulCharacter', 7],
    ['a NUL byte between tokens', '{"a":\0 1}', 'NulCharacter', 5],
    ['an escaped NUL', '{"a":"\\u0000"}', 'NulCharacter', 6],
    ['half a surrogate pair', '["\\ud83d"]', 'LoneSurrogate', 2],
    ['the second half alone', '["\\ude00"]', 'LoneSurrogate', 2],
    ['two first halves', '["\\ud83d\\ud83d"]', 'LoneSurrogate', 2],
    ['half a pair in a key', '{"\\ud83dx":1}', 'LoneSurrogate', 2],
    ['a byte that is no UTF-8', Uint8Array.of(0x22, 0x61, 0xff, 0x22), 'InvalidUtf8', undefined],
    ['a cut character', Buffer.concat([bytes('"\ufffdé'), Uint8Array.of(0xe2, 0x82)]), 'InvalidUtf8', undefined],
    ['a surrogate in UTF-8', Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), 'InvalidUtf8', undefined],
    ['an overlong encoding', Uint8Array.of(0x22, 0xc0, 0x80, 0x22), 'InvalidUtf8', undefined],
    ['an empty text', '', 'InvalidJson', undefined],
    ['a byte order mark', '\ufeff{}', 'InvalidJson', undefined],
    ['half an object', '{"a":1', 'InvalidJson', undefined],
    ['a string without an end', '"abc', 'InvalidJson', undefined],
    ['a string that ends in a backslash', '"abc\\', 'InvalidJson', undefined],
    ['a key with a bad escape', '{"\\x":1}', 'InvalidJson', 1],
    ['an escape that is cut', '"\\u12"', 'InvalidJson', undefined],
    ['closing more than was opened', '}}}}]', 'InvalidJson', undefined],
    ['a comment', '{"a":1/*"*/}', 'InvalidJson', undefined],
    ['two documents', '{} {}', 'InvalidJson', undefined],
  ];
  for (const [title, document, code, position] of refused) {
    it(`rejects ${title}`, () => {
      const error = refusal(document);
      assert.equal(error.code, code);
      if (position !== undefined) assert.equal(error.position, position);
    });
  }

  const accepted = [
    '{"constructor":{"prototype":1},"toString":2,"hasOwnProperty":3}',
    '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}',
    '{"é":1,"Ã©":2,"\\u00c3\\u0028":3,"😀":4,"\\u00f0\\u009f":5}',
    '["__proto__","{\\"a\\":1,\\"a\\":2}"]',
    '"\\ud83d\\ude00 😀 \\u200f \\\\ \\" \\/"',
    '{"a":"x","b":"a","c":"b"}',
    ' { "a" : [ 1 , -2.5e3 , true , null ] } ',
    '{"a":1}'.replace('1', '['.repeat(63) + ']'.repeat(63)),
    wide(20_000),
    '7',
  ];
  for (const document of accepted) {
    it(`reads ${document.slice(0, 40)} like JSON.parse`, () => {
      assert.deepEqual(parseJson(bytes(document)), JSON.parse(document));
    });
  }

  it('quotes a key that occurs twice as it was written', () => {
    assert.match(refusal('{"é":1,"é":2}').message, /"é"/);
  });

  it('reads a part of a larger buffer', () => {
    assert.deepEqual(parseJson(bytes('xx{"a":1}yy').subarray(2, 9)), { a: 1 });
  });

  it('never quotes the document in a syntax error', () => {
    assert.doesNotMatch(refusal('{"password": hunter2}').message, /hunter2|password/);
  });

  it('reads any output of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: anyCharacter }), (text) => {
        if (/__proto__|\\u0000|\\ud[89a-f]/i.test(text)) return;
        assert.deepEqual(parseJson(bytes(text)), JSON.parse(text));
      }),
      { seed: 20261121, numRuns: 500 },
    );
  });

  it('accepts nothing that JSON.parse rejects, and throws only JsonError', () => {
    const piece = fc.constantFrom(...'{}[],:"\\1 é\0', '"a"', '"b"', '\\u0041', '\\u');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30, size: 'max' }), (pieces) => {
        const text = pieces.join('');
        let parsed: unknown;
        try {
          parsed = parseJson(bytes(text));
        } catch (error) {
          assert.ok(error instanceof JsonError, String(error));
          return;
        }
        assert.deepEqual(parsed, JSON.parse(text));
      }),
      { seed: 20261121, numRuns: runs(10_000) },
    );
  });
});

describe('own', () => {
  it('reads only own properties of records', () => {
    assert.equal(own({ a: 1 }, 'a'), 1);
    assert.equal(own({}, 'constructor'), undefined);
    assert.equal(own(JSON.parse('{"__proto__":{"x":1}}'), 'x'), undefined);
    for (const value of [null, undefined, 'text', 5, ['x']]) assert.equal(own(value, 'length'), undefined);
  });
});

describe('isRecord', () => {
  it('is true for objects except arrays', () => {
    assert.ok([{}, Object.create(null)].every(isRecord));
    assert.ok(![[], null, 'x', 1, undefined].some(isRecord));
  });
});

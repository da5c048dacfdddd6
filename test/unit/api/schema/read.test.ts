import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type TSchema, Type } from 'typebox';
import { oneOf } from '../../../../src/api/schema/fields.ts';
import { type Read, readBySchema } from '../../../../src/api/schema/read.ts';
import { toStructural } from '../../../../src/api/schema/structural-schema.ts';
import { own } from '../../../../src/kit/json-value.ts';

const text = Type.String({ maxLength: 8 });
const read = (schema: TSchema, input: unknown): Read<unknown> => readBySchema(toStructural(schema), input, 'spec');

function refusals(schema: TSchema, input: unknown): string[] {
  const result = read(schema, input);
  return result.ok ? [] : result.errors.map(({ field, message }) => `${field} ${message}`);
}

describe('readBySchema', () => {
  const accepted: [string, TSchema, unknown, unknown][] = [
    ['drops unknown fields', Type.Object({ a: text }), { a: 'x', b: 'y' }, { a: 'x' }],
    ['fills defaults in', Type.Object({ a: Type.String({ maxLength: 8, default: 'd' }) }), {}, { a: 'd' }],
    ['reads null as absent', Type.Object({ a: Type.String({ maxLength: 8, default: 'd' }) }), { a: null }, { a: 'd' }],
    ['leaves optional nulls out', Type.Object({ a: Type.Optional(text) }), { a: null }, {}],
    [
      'keeps nulls of nullable fields',
      Type.Object({ a: Type.Unsafe({ nullable: true, 'x-kubernetes-preserve-unknown-fields': true }) }),
      { a: null },
      { a: null },
    ],
    ['counts code points, not UTF-16 units', text, '😀'.repeat(8), '😀'.repeat(8)],
    [
      'reads numbers and text as quantities',
      Type.Array(Type.Unsafe({ 'x-kubernetes-int-or-string': true }), { maxItems: 2 }),
      [1, '500m'],
      [1, '500m'],
    ],
  ];
  for (const [title, schema, input, expected] of accepted) {
    it(title, () => assert.deepEqual(read(schema, input), { ok: true, value: expected }));
  }

  const refused: [string, TSchema, unknown, string][] = [
    ['a missing field', Type.Object({ a: text }), {}, 'spec.a is required'],
    ['undefined', Type.Object({}), undefined, 'spec is required'],
    ['a wrong type', text, 7, 'spec must be a string; found 7'],
    ['a list for an object', Type.Object({}), [], 'spec must be an object; found a list'],
    ['an object for a list', Type.Array(text, { maxItems: 1 }), { length: 1 }, 'spec must be a list; found an object'],
    ['text for a boolean', Type.Boolean(), 'true', 'spec must be true or false; found "true"'],
    ['a fraction', Type.Integer(), 1.5, 'spec must be a whole number; found 1.5'],
    ['a number out of range', Type.Integer({ minimum: 1 }), 0, 'spec must be at least 1; found 0'],
    ['another choice', oneOf(['a', 'b']), 'c', 'spec must be one of "a", "b"; found "c"'],
    ['text that is too long', text, 'x'.repeat(9), 'spec is longer than 8 characters'],
    ['empty text', Type.String({ minLength: 1, maxLength: 8 }), '', 'spec may not be empty'],
    ['a pattern mismatch', Type.String({ maxLength: 8, pattern: '^a+$' }), 'b', 'spec must match ^a+$; found "b"'],
    [
      'a time without zone',
      Type.String({ format: 'date-time' }),
      '2026-11-21T09:30:00',
      'spec must be an RFC 3339 time such as 2026-11-21T09:30:00Z; found "2026-11-21T09:30:00"',
    ],
    ['too many items', Type.Array(text, { maxItems: 1 }), ['a', 'b'], 'spec has 2 items; at most 1 are allowed'],
    ['too few items', Type.Array(text, { minItems: 1, maxItems: 1 }), [], 'spec has 0 items; at least 1 must be set'],
    ['a null item', Type.Array(text, { maxItems: 1 }), [null], 'spec[0] may not be null'],
    [
      'too many entries',
      Type.Record(Type.String(), text, { maxProperties: 1 }),
      { a: '', b: '' },
      'spec has 2 entries; at most 1 are allowed',
    ],
    [
      'a bad entry',
      Type.Record(Type.String(), text, { maxProperties: 1 }),
      { 'a.b': 1 },
      'spec["a.b"] must be a string; found 1',
    ],
  ];
  for (const [title, schema, input, message] of refused) {
    it(`rejects ${title}`, () => assert.deepEqual(refusals(schema, input), [message]));
  }

  it('ignores inherited fields', () => {
    const input = Object.create({ a: 'inherited' });
    assert.deepEqual(refusals(Type.Object({ a: text }), input), ['spec.a is required']);
    assert.equal(own(input, 'a'), undefined);
  });

  it('keeps a __proto__ key as a plain entry and changes no prototype', () => {
    const labels = Type.Record(Type.String(), text, { maxProperties: 4 });
    const result = read(labels, JSON.parse('{"__proto__": "x", "constructor": "y"}'));
    assert.ok(result.ok);
    assert.deepEqual(Object.entries(result.value as object), [
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
    assert.equal(Object.getPrototypeOf(result.value), Object.prototype);
  });

  it('stops after ten errors, and quotes at most 64 characters', () => {
    const list = Type.Array(Type.Integer(), { maxItems: 1000 });
    const errors = refusals(
      list,
      Array.from({ length: 1000 }, () => 'x'.repeat(100_000)),
    );
    assert.equal(errors.length, 10);
    assert.ok(errors.every((error) => error.length < 120));
  });

  it('returns a new copy of a default each time', () => {
    const schema = Type.Object({ list: Type.Array(text, { maxItems: 3, default: [] }) });
    const [first, second] = [read(schema, {}), read(schema, {})];
    assert.ok(first.ok && second.ok);
    assert.notEqual((first.value as { list: unknown }).list, (second.value as { list: unknown }).list);
  });

  it('never throws, and reads its own results unchanged', () => {
    const schema = Type.Object({
      a: Type.Optional(text),
      b: Type.Array(Type.Integer(), { maxItems: 3, default: [] }),
      c: Type.Optional(Type.Record(Type.String(), text, { maxProperties: 3 })),
    });
    const input = fc.oneof(
      fc.anything(),
      fc.record(
        { a: fc.anything(), b: fc.anything(), c: fc.dictionary(fc.string(), fc.anything()) },
        { requiredKeys: [] },
      ),
    );
    fc.assert(
      fc.property(input, (value) => {
        const once = read(schema, value);
        if (once.ok) assert.deepEqual(read(schema, once.value), once);
        else assert.ok(once.errors.length > 0);
      }),
      { seed: 20261121, numRuns: 500 },
    );
  });
});

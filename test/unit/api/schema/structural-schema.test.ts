import assert from 'node:assert/strict';
import { type TSchema, Type } from 'typebox';
import { oneOf } from '../../../../src/api/schema/fields.ts';
import { toStructural } from '../../../../src/api/schema/structural-schema.ts';

const bounded = Type.String({ maxLength: 8 });

describe('toStructural', () => {
  const rewritten: [string, TSchema, object][] = [
    [
      'a choice of texts needs no maxLength',
      oneOf(['a', 'b'], { description: 'one', default: 'a' }),
      { type: 'string', description: 'one', default: 'a', enum: ['a', 'b'] },
    ],
    [
      'a record becomes additionalProperties',
      Type.Record(Type.String(), bounded, { maxProperties: 3 }),
      { type: 'object', maxProperties: 3, additionalProperties: { type: 'string', maxLength: 8 } },
    ],
    [
      'a property with a default is not required',
      Type.Object({ a: bounded, b: Type.String({ maxLength: 8, default: 'x' }), c: Type.Optional(bounded) }),
      {
        type: 'object',
        required: ['a'],
        properties: {
          a: { type: 'string', maxLength: 8 },
          b: { type: 'string', maxLength: 8, default: 'x' },
          c: { type: 'string', maxLength: 8 },
        },
      },
    ],
    [
      'Kubernetes extensions pass through',
      Type.Unsafe({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
      { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    ],
    [
      'a value of any type needs no type',
      Type.Unsafe({ 'x-kubernetes-preserve-unknown-fields': true }),
      { 'x-kubernetes-preserve-unknown-fields': true },
    ],
  ];
  for (const [title, schema, expected] of rewritten) {
    it(title, () => assert.deepEqual(toStructural(schema), expected));
  }

  const refused: [string, TSchema, RegExp][] = [
    ['a reference', Type.Unsafe({ $ref: 'other' }), /"\$ref" is not structural/],
    ['allOf', Type.Intersect([Type.Object({}), Type.Object({})]), /"allOf" is not structural/],
    ['not', Type.Unsafe({ type: 'object', not: {} }), /"not" is not structural/],
    ['a choice between types', Type.Union([bounded, Type.Integer()]), /"anyOf" is not structural/],
    ['an exclusive bound', Type.Integer({ exclusiveMinimum: 0 }), /"exclusiveMinimum" is not structural/],
    ['additionalProperties', Type.Object({ a: bounded }, { additionalProperties: false }), /"additionalProperties"/],
    ['uniqueItems', Type.Array(bounded, { maxItems: 2, uniqueItems: true }), /"uniqueItems"/],
    ['a missing type', Type.Any(), /a type is missing/],
    ['null', Type.Null(), /type "null" is not structural/],
    ['a list of types', Type.Unsafe({ type: ['string', 'null'] }), /is not structural/],
    ['keys with a pattern', Type.Record(Type.String({ pattern: '^a' }), bounded, { maxProperties: 1 }), /its keys/],
    ['an object without properties', Type.Unsafe({ type: 'object' }), /an object needs properties/],
    ['an unbounded string', Type.String(), /a string needs maxLength/],
    ['an unbounded list', Type.Array(bounded), /a list needs maxItems/],
    ['an unbounded map', Type.Record(Type.String(), bounded), /a map needs maxProperties/],
  ];
  for (const [title, schema, message] of refused) {
    it(`rejects ${title}`, () => assert.throws(() => toStructural(schema), message));
  }

  it('names the rejected field', () => {
    const schema = Type.Object({ list: Type.Array(Type.Object({ text: Type.String() }), { maxItems: 1 }) });
    assert.throws(() => toStructural(schema, 'Kind.spec'), {
      message: 'Kind.spec.list[].text: a string needs maxLength',
    });
  });
});

import assert from 'node:assert/strict';
import { exactPart, inexactNumber } from '../../../src/kit/inexact-number.ts';

describe('a number that JSON.parse may have changed', () => {
  const cases: [json: string, path: string | undefined][] = [
    ['{"a": 9007199254740991, "b": [-9007199254740991, 0.1, 1e300, null, "9007199254740993"]}', undefined],
    ['{"a": 9007199254740993}', 'a'],
    ['{"a": {"b": [0, {"c": -9007199254740993}]}}', 'a.b[1].c'],
    ['{"a": 9223372036854775807}', 'a'],
    ['{"a": 100000000000000000000}', undefined],
    ['9007199254740993', ''],
  ];
  for (const [json, path] of cases) {
    it(`is ${path === undefined ? 'nowhere' : `at ${JSON.stringify(path)}`} in ${json}`, () => {
      assert.equal(inexactNumber(JSON.parse(json)), path);
    });
  }
});

describe('the exact part of a merge patch', () => {
  const cases: [json: string, part: string | undefined][] = [
    ['{"a": 1, "b": null, "c": {}, "d": []}', '{"a":1,"b":null,"c":{},"d":[]}'],
    ['{"a": 9007199254740993, "b": {"c": 9007199254740993, "d": 2}}', '{"b":{"d":2}}'],
    ['{"a": {"b": {"c": 9007199254740993}}, "d": 1}', '{"d":1}'],
    ['{"a": [{"b": 1, "c": 9007199254740993}], "d": [1]}', '{"d":[1]}'],
    ['{"a": {"b": 9007199254740993}}', undefined],
    ['{"__proto__": {"a": 1}}', '{"__proto__":{"a":1}}'],
    ['null', 'null'],
  ];
  for (const [json, part] of cases) {
    it(`of ${json} is ${part ?? 'nothing'}`, () => {
      assert.equal(JSON.stringify(exactPart(JSON.parse(json))), part);
    });
  }
});

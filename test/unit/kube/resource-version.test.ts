import assert from 'node:assert/strict';
import { compareResourceVersions, isOlder } from '../../../src/kube/resource-version.ts';

describe('resource version', () => {
  const cases: [a: string, b: string, order: -1 | 0 | 1 | undefined][] = [
    ['9', '10', -1],
    ['10', '9', 1],
    ['10', '10', 0],
    ['9007199254740993', '9007199254740992', 1],
    ['abc', 'abc', 0],
    ['abc', '10', undefined],
    ['10', '', undefined],
    ['010', '9', undefined],
    ['1e3', '9', undefined],
  ];
  for (const [a, b, order] of cases) {
    it(`orders "${a}" and "${b}" as ${order}`, () => {
      const found = compareResourceVersions(a, b);
      assert.equal(found === undefined ? undefined : Math.sign(found), order);
      assert.equal(isOlder(a, b), order === -1);
    });
  }
});

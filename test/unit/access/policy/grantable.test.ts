import assert from 'node:assert/strict';
import { parseGrantable } from '../../../../src/access/policy/granted-rules.ts';

const parse = (value: unknown) => parseGrantable(Buffer.from(JSON.stringify(value)));
const rule = { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] };

describe('the list of grantable rules', () => {
  it('is read as rules of a Role', () => {
    assert.deepEqual(parse([rule, { ...rule, resourceNames: ['a'] }]), [
      { ...rule, resourceNames: [] },
      { ...rule, resourceNames: ['a'] },
    ]);
    assert.deepEqual(parse([]), []);
  });

  for (const [title, value, message] of [
    ['no list', { rules: [rule] }, /the file must be a list/],
    ['an invalid rule', ['pods/log'], /\[0\] must be a rule with apiGroups, resources, verbs/],
    ['URLs', [rule, { nonResourceURLs: ['/metrics'], verbs: ['get'] }], /\[1\] has "nonResourceURLs"; allowed are/],
    ['no verbs', [{ ...rule, verbs: [] }], /\[0\]\.verbs must be a list of strings/],
    ['no groups', [{ resources: ['pods'], verbs: ['get'] }], /\[0\]\.apiGroups must be/],
    ['names that mean all', [{ ...rule, resourceNames: [] }], /\[0\]\.resourceNames must be/],
    ['a verb that is a number', [{ ...rule, verbs: [1] }], /\[0\]\.verbs must be/],
  ] as const) {
    it(`is rejected with ${title}`, () => assert.throws(() => parse(value), { code: 'InvalidGrantable', message }));
  }

  it('is rejected if it is not JSON', () =>
    assert.throws(() => parseGrantable(Buffer.from('- a')), { code: 'InvalidJson' }));
});

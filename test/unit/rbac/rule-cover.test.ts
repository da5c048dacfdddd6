import assert from 'node:assert/strict';
import fc from 'fast-check';
import { covers, describeRight, type RbacRule, rightsOf, uncovered, verbsOn } from '../../../src/rbac/rule-cover.ts';
import { runs } from '../../support/runs.ts';

type Words = string | readonly string[];
const list = (words: Words): readonly string[] => (typeof words === 'string' ? words.split(' ') : words);

/** `rule('get list', 'pods')`; the default is the core group. */
const rule = (
  verbs: Words,
  resources: Words,
  resourceNames?: readonly string[],
  apiGroups: Words = [''],
): RbacRule => ({
  apiGroups: list(apiGroups),
  resources: list(resources),
  verbs: list(verbs),
  ...(resourceNames ? { resourceNames } : {}),
});

describe('the comparison of rules', () => {
  for (const [title, held, asked, expected] of [
    ['the same rule', [rule('get', 'pods')], [rule('get', 'pods')], true],
    ['fewer verbs', [rule('get list', 'pods')], [rule('get', 'pods')], true],
    ['another verb', [rule('get', 'pods')], [rule('get list', 'pods')], false],
    ['verbs out of two rules', [rule('get', 'pods'), rule('list', 'pods')], [rule('get list', 'pods')], true],
    ['a mix that no rule gives', [rule('get', 'pods'), rule('list', 'services')], [rule('list', 'pods')], false],
    ['another group', [rule('get', 'pods')], [rule('get', 'pods', undefined, 'apps')], false],
    ['any group', [rule('get', 'pods', undefined, '*')], [rule('get', 'pods', undefined, 'apps')], true],
    ['a verb by wildcard', [rule('*', 'pods')], [rule('get', 'pods')], true],
    ['a wildcard by a verb', [rule('get list watch', 'pods')], [rule('*', 'pods')], false],
    ['a wildcard by a wildcard', [rule('*', '*')], [rule('*', '*')], true],
    ['a subresource by the resource', [rule('get', 'pods')], [rule('get', 'pods/log')], false],
    ['a subresource by the wildcard', [rule('get', '*')], [rule('get', 'pods/log')], true],
    ['a subresource of any resource', [rule('get', '*/log')], [rule('get', 'pods/log')], true],
    ['another subresource of any resource', [rule('get', '*/log')], [rule('get', 'pods/exec')], false],
    ['a subresource of any by one of pods', [rule('get', 'pods/log')], [rule('get', '*/log')], false],
    ['a resource by its subresources', [rule('get', 'pods/*')], [rule('get', 'pods/log')], false],
    ['one name by all', [rule('get', 'pods')], [rule('get', 'pods', ['a'])], true],
    ['one name by an empty list, which means all', [rule('get', 'pods', [])], [rule('get', 'pods', ['a'])], true],
    ['one name of several', [rule('get', 'pods', ['a', 'b'])], [rule('get', 'pods', ['a'])], true],
    ['names of two', [rule('get', 'pods', ['a']), rule('get', 'pods', ['b'])], [rule('get', 'pods', ['a', 'b'])], true],
    ['another name', [rule('get', 'pods', ['a'])], [rule('get', 'pods', ['b'])], false],
    ['all names by some', [rule('get', 'pods', ['a', 'b'])], [rule('get', 'pods')], false],
    ['all names, as an empty list, by some', [rule('get', 'pods', ['a', 'b'])], [rule('get', 'pods', [])], false],
    ['a name called * by another', [rule('get', 'pods', ['*'])], [rule('get', 'pods', ['a'])], false],
    ['no rules by no rules', [], [], true],
    ['a rule by no rules', [], [rule('get', 'pods')], false],
  ] as const) {
    it(`${expected ? 'covers' : 'does not cover'} ${title}`, () => assert.equal(covers(held, asked), expected));
  }

  const words = fc.subarray(['get', 'list', '*'], { minLength: 1 });
  const arbitrary = fc.record({
    apiGroups: fc.subarray(['', 'apps', '*'], { minLength: 1 }),
    resources: fc.subarray(['pods', 'pods/log', '*/log', '*'], { minLength: 1 }),
    verbs: words,
    resourceNames: fc.subarray(['a', 'b']),
  });
  const rules = fc.array(arbitrary, { maxLength: 3 });

  it('is reflexive, monotonic, and transitive', () => {
    fc.assert(
      fc.property(rules, rules, rules, (a, b, c) => {
        assert.ok(covers(a, a));
        assert.ok(covers([...a, ...b], a));
        if (covers(a, b)) {
          assert.ok(covers([...a, ...c], b));
          if (covers(b, c)) assert.ok(covers(a, c));
        }
      }),
      { seed: 20_261_121, numRuns: runs(4000) },
    );
  });
});

describe('single permissions', () => {
  it('are described in the words of kubectl', () => {
    const asked = [rule('get create', 'pods/log deployments', ['a'], ['', 'apps'])];
    assert.equal(rightsOf(asked).length, 8);
    assert.deepEqual(
      uncovered([rule('*', 'pods/log'), rule('get', '*', undefined, 'apps')], asked).map(describeRight),
      ['get deployments "a"', 'create deployments "a"', 'create pods/log.apps "a"', 'create deployments.apps "a"'],
    );
  });
});

describe('the verbs on a resource', () => {
  for (const [title, rules, expected] of [
    ['are those of all rules, once', [rule('get list', 'pods/log'), rule('get watch', 'pods/log')], 'get list watch'],
    ['include those of wildcards', [rule('get', '*'), rule('list', '*/log')], 'get list'],
    ['exclude other resources and groups', [rule('get', 'pods'), rule('list', 'pods/log', undefined, 'apps')], ''],
    ['exclude those on named objects', [rule('get', 'pods/log', ['a'])], ''],
  ] as const) {
    it(title, () => assert.equal(verbsOn(rules, { group: '', resource: 'pods/log' }).join(' '), expected));
  }
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isMacOf, macOf, type Purpose } from '../../../../src/access/signing/signer.ts';
import { keyOf } from '../../../support/signers.ts';

const [old, current, other] = [keyOf('old'), keyOf('current'), keyOf('other')];
const keys = { current, previous: old };
const purposes: Purpose[] = ['stamp', 'grant', 'child'];
const value = { name: 'debug', groups: ['devs'] };

describe('a MAC', () => {
  it('verifies for equal values with any order of fields', () => {
    const mac = macOf(current, 'grant', value);
    assert.match(mac, /^[\w-]{43}$/);
    assert.equal(isMacOf(keys, 'grant', { groups: ['devs'], name: 'debug' }, mac), true);
  });

  for (const made of purposes) {
    for (const asked of purposes.filter((purpose) => purpose !== made)) {
      it(`for a ${made} does not verify for a ${asked}`, () => {
        assert.equal(isMacOf(keys, asked, value, macOf(current, made, value)), false);
      });
    }
  }

  it('verifies under the current and the previous key, and under no other', () => {
    const verdicts = [current, old, other].map((key) => isMacOf(keys, 'stamp', value, macOf(key, 'stamp', value)));
    assert.deepEqual(verdicts, [true, true, false]);
    assert.equal(isMacOf({ current }, 'stamp', value, macOf(old, 'stamp', value)), false);
  });

  const differing: [string, unknown][] = [
    ['a member more', { ...value, uid: '' }],
    ['a member less', { name: 'debug' }],
    ['another order of a list', { ...value, groups: ['devs', 'a'] }],
    ['values moved between members', { name: 'devs', groups: ['debug'] }],
    ['text for a list', { ...value, groups: '["devs"]' }],
    ['null', null],
  ];
  for (const [what, changed] of differing) {
    it(`does not verify for ${what}`, () => {
      assert.equal(isMacOf(keys, 'stamp', changed, macOf(current, 'stamp', value)), false);
    });
  }

  it('does not verify for values that are no MAC, without an error', () => {
    const mac = macOf(current, 'child', value);
    const hostile = [
      undefined,
      null,
      7,
      {},
      [mac],
      '',
      mac.slice(1),
      `${mac}=`,
      ` ${mac}`,
      mac.toUpperCase(),
      'é'.repeat(43),
    ];
    for (const found of hostile) assert.equal(isMacOf(keys, 'child', value, found), false, String(found));
    fc.assert(
      fc.property(fc.anything(), (found) => !isMacOf(keys, 'child', value, found)),
      { seed: 42, numRuns: 500 },
    );
  });
});

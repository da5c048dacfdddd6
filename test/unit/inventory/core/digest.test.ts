import assert from 'node:assert/strict';
import { digestInputs } from '../../../../src/inventory/core/digest.ts';
import type { EntryContent } from '../../../../src/inventory/entry.ts';
import type { JsonPointer } from '../../../../src/kit/json-pointer.ts';

const registration = { reads: ['/spec/cluster/region', '/status/outputs/network'] as JsonPointer[], generation: 1 };
const contentOf = (region: unknown, network?: unknown): EntryContent => ({
  spec: { cluster: { region, other: 1 } },
  status: { outputs: network === undefined ? {} : { network } },
});
const digest = (content: EntryContent, force?: string, generation = 1): string =>
  digestInputs(content, { ...registration, generation }, force);

describe('the digest of inputs', () => {
  it('is the same for the same values, whatever the order of fields and reads', () => {
    const a = contentOf('eu', { vnet: 'v', cidr: 'c' });
    const b = contentOf('eu', { cidr: 'c', vnet: 'v' });
    assert.equal(digest(a), digest(b));
    const reversed = digestInputs(b, { ...registration, reads: [...registration.reads].reverse() }, undefined);
    assert.equal(reversed, digest(a));
    assert.match(digest(a), /^[0-9a-f]{64}$/);
  });

  it('does not depend on what is not read', () => {
    const a = contentOf('eu');
    assert.equal(digest(a), digest({ ...a, status: { outputs: { cluster: { x: 1 } } } }));
  });

  const base = digest(contentOf('eu'));
  for (const [what, other] of [
    ['a value', digest(contentOf('us'))],
    ['null instead of nothing', digest(contentOf('eu', null))],
    ['an empty object instead of nothing', digest(contentOf('eu', {}))],
    ['another type', digest(contentOf(['eu']))],
    ['the generation of the registration', digest(contentOf('eu'), undefined, 2)],
    ['force', digest(contentOf('eu'), '1')],
    ['an empty force', digest(contentOf('eu'), '')],
  ] as const) {
    it(`differs by ${what}`, () => assert.notEqual(other, base));
  }

  it('is made of hostile content too', () => {
    let deep: unknown = 'x';
    for (let i = 0; i < 9000; i += 1) deep = [deep];
    assert.match(digest(contentOf(deep)), /^[0-9a-f]{64}$/);
    assert.notEqual(digest(contentOf(deep)), base);
    assert.equal(digest(contentOf('eu', JSON.parse('{"__proto__": 1}'))) === base, false);
  });
});

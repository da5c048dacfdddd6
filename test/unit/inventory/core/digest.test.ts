import assert from 'node:assert/strict';
import type { MissingInput } from '../../../../src/api/inventory/fields.ts';
import { allHold, digestInputs, type EntryReaders } from '../../../../src/inventory/core/digest.ts';
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
  it('is the same for the same values in any order of fields and reads', () => {
    const a = contentOf('eu', { vnet: 'v', cidr: 'c' });
    const b = contentOf('eu', { cidr: 'c', vnet: 'v' });
    assert.equal(digest(a), digest(b));
    const reversed = digestInputs(b, { ...registration, reads: [...registration.reads].reverse() }, undefined);
    assert.equal(reversed, digest(a));
    assert.match(digest(a), /^[0-9a-f]{64}$/);
  });

  it('does not depend on fields that are not read', () => {
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

  it('handles untrusted content', () => {
    let deep: unknown = 'x';
    for (let i = 0; i < 9000; i += 1) deep = [deep];
    assert.match(digest(contentOf(deep)), /^[0-9a-f]{64}$/);
    assert.notEqual(digest(contentOf(deep)), base);
    assert.equal(digest(contentOf('eu', JSON.parse('{"__proto__": 1}'))) === base, false);
  });
});

const content = {
  spec: { mode: 'managed', cluster: { zones: ['a', 'b'], gone: null } },
  status: { outputs: { network: { id: 1 } } },
};
const present: EntryReaders = [{ reads: ['/status/outputs/network/id', '/spec/mode'] }];

describe('missing inputs', () => {
  for (const [want, path, value, holds] of [
    ['present', '/status/outputs/network/id', undefined, true],
    ['present', '/status/outputs/network', undefined, true],
    ['present', '/status/outputs/network/name', undefined, false],
    ['present', '/status/outputs/cluster/endpoint', undefined, false],
    ['present', '/spec/cluster/gone', undefined, false],
    ['present', '/spec/cluster/toString', undefined, false],
    ['absent', '/status/outputs/cluster', undefined, true],
    ['absent', '/spec/cluster/gone', undefined, true],
    ['absent', '/status/outputs/network', undefined, false],
    ['equals', '/spec/mode', 'managed', true],
    ['equals', '/spec/mode', 'byoc', false],
    ['equals', '/spec/cluster/zones', ['a', 'b'], true],
    ['equals', '/spec/cluster/zones', ['b', 'a'], false],
    ['equals', '/spec/nothing', null, false],
    ['equals', '/spec/cluster/gone', null, true],
    ['noReaders', '/status/outputs/network', undefined, false],
    ['noReaders', '/status/outputs/network/id/x', undefined, false],
    ['noReaders', '/status/outputs/networks', undefined, true],
    ['noReaders', '/status/outputs/cluster', undefined, true],
    ['present', 'no pointer', undefined, false],
  ] as const) {
    it(`${path} ${want}${value === undefined ? '' : ` ${JSON.stringify(value)}`}: ${holds}`, () => {
      const input = { path, want, ...(value === undefined ? {} : { value }) } as MissingInput;
      assert.equal(allHold([input], content, present), holds);
    });
  }

  it('compares values that are nested too deeply without an error', () => {
    let value: unknown = 1;
    for (let depth = 0; depth < 10_000; depth++) value = [value];
    const deep = { ...content, spec: { deep: value } };
    assert.equal(allHold([{ path: '/spec/deep', want: 'equals', value: [1] }], deep, present), false);
  });

  it('hold only if all are present', () => {
    const there: MissingInput = { path: '/spec/mode', want: 'present' };
    assert.equal(allHold([], content, present), true);
    assert.equal(allHold([there, { path: '/spec/other', want: 'present' }], content, present), false);
  });
});

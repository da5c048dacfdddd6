import assert from 'node:assert/strict';
import type { MissingInput } from '../../../../src/api/inventory/fields.ts';
import { allHold, type PresentReads } from '../../../../src/inventory/core/digest.ts';

const content = {
  spec: { mode: 'managed', cluster: { zones: ['a', 'b'], gone: null } },
  status: { outputs: { network: { id: 1 } } },
};
const present: PresentReads = [{ component: 'cluster', reads: ['/status/outputs/network/id', '/spec/mode'] }];

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

  it('all have to be there', () => {
    const there: MissingInput = { path: '/spec/mode', want: 'present' };
    assert.equal(allHold([], content, present), true);
    assert.equal(allHold([there, { path: '/spec/other', want: 'present' }], content, present), false);
  });
});

import assert from 'node:assert/strict';
import { maxEntryBytes } from '../../../../src/api/inventory/names.ts';
import { entryBytes, sizeViolation } from '../../../../src/inventory/policy/entry-size.ts';

const entry = (filler: number, more: { metadata?: object; status?: object } = {}) => ({
  metadata: { name: 'rt-1', ...more.metadata },
  spec: { cluster: { notes: 'x'.repeat(filler) } },
  ...(more.status ? { status: more.status } : {}),
});
const room = maxEntryBytes - entryBytes(entry(0));

describe('the size of an entry', () => {
  const cases: [string, unknown, unknown, boolean][] = [
    ['a new one with 64 KiB', undefined, entry(room), true],
    ['a new one with 64 KiB and one byte', undefined, entry(room + 1), false],
    ['a byte more', entry(room), entry(room + 1), false],
    ['managedFields', undefined, entry(room, { metadata: { managedFields: ['x'.repeat(9000)] } }), true],
    ['one that is too large and shrinks', entry(room + 9), entry(room + 8), true],
    ['one that is too large and stays', entry(room + 9), entry(room + 9), true],
    ['one that is too large and grows', entry(room + 9), entry(room + 10), false],
    [
      'the status of the server in one that is too large',
      entry(room + 9),
      entry(room + 9, { status: { conditions: [{ type: 'Ready' }], components: [{}] } }),
      true,
    ],
    [
      'the status of the server in one at the limit',
      entry(room - 99),
      entry(room - 12, { status: { conditions: [{ type: 'Ready' }], components: ['x'.repeat(9000)] } }),
      true,
    ],
    ['what an entry waits for', entry(room - 99), entry(room - 12, { status: { waitingFor: 'x'.repeat(260) } }), true],
    ['our finalizer on it', entry(room + 9), entry(room + 9, { metadata: { finalizers: ['f'] } }), true],
    ['an annotation on it', entry(room + 9), entry(room + 9, { metadata: { annotations: { a: 'b' } } }), false],
    ['outputs into it', entry(room - 9), entry(room - 9, { status: { outputs: { network: {} } } }), false],
    ['one that is being deleted', entry(room + 9), entry(room + 99, { metadata: { deletionTimestamp: 'now' } }), true],
  ];
  for (const [what, before, after, allowed] of cases) {
    it(`${allowed ? 'accepts' : 'rejects'} ${what}`, () => {
      const violation = sizeViolation(before, after);
      assert.deepEqual(violation?.code, allowed ? undefined : 'EntryTooLarge');
    });
  }

  it('is counted in bytes and reported with the limit', () => {
    assert.equal(entryBytes({ spec: 'ü' }), Buffer.byteLength('{"spec":"ü"}'));
    const violation = sizeViolation(undefined, entry(room + 1));
    assert.equal(violation?.status, 413);
    assert.match(violation?.message ?? '', /would have 65537 bytes; at most 65536 are allowed/);
  });

  it('is 0 for a value that is not an object', () => {
    for (const odd of [undefined, null, 'x', [], 7]) assert.equal(entryBytes(odd), 0);
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type AuditRecord, decidingGroupsFirst, formatRecord } from '../../../src/audit/record.ts';
import { anyCharacter } from '../../support/any-character.ts';

const stamp = {
  chain: '0123456789abcdef01234567',
  seq: 1,
  lost: 0,
  time: '2026-11-21T09:00:00.000000Z',
  replica: 'drawbridge-0',
  prev: '',
};
const record: AuditRecord = {
  event: 'admission',
  verdict: 'denied',
  who: { user: 'alice', uid: 'u-1', groups: ['devs'] },
  what: { operation: 'CREATE', apiVersion: 'v1', kind: 'Pod', namespace: 'payments', name: 'web' },
};

describe('audit lines', () => {
  it('have only the named fields, even if an object has more', () => {
    const smuggled = {
      ...record,
      object: { data: 'hunter2' },
      who: { ...record.who, token: 'hunter2' },
      what: { ...record.what, spec: 'hunter2' },
    };
    const { lost: _, ...printed } = stamp;
    assert.deepEqual(JSON.parse(formatRecord(stamp, smuggled)), { ...printed, ...record });
  });

  it('have the number of lost lines before them, if any', () => {
    assert.equal(JSON.parse(formatRecord({ ...stamp, lost: 3 }, record)).lost, 3);
  });

  it('name the person for whom a program voted', () => {
    const votes = [{ uid: 'v-1', voter: 'system:serviceaccount:chat:bot', decision: 'Approve', onBehalfOf: 'frank' }];
    assert.deepEqual(JSON.parse(formatRecord(stamp, { ...record, votes })).votes, votes);
  });

  it('name the votes with the beginning of their reasons', () => {
    const vote = { uid: 'v-1', voter: 'carol', decision: 'Approve', max: '20m', reason: 'r'.repeat(300) };
    const line = formatRecord(stamp, { ...record, votes: [vote, { uid: 'v-2' }] });
    const shortened = { ...vote, reason: `${'r'.repeat(256)}… (300 characters)` };
    assert.deepEqual(JSON.parse(line).votes, [shortened, { uid: 'v-2' }]);
  });

  it('keep the first 32 groups and their total number', () => {
    const groups = Array.from({ length: 1000 }, (_, index) => `group-${index}`);
    const { who } = JSON.parse(formatRecord(stamp, { ...record, who: { user: 'alice', groups } }));
    assert.deepEqual(who, { user: 'alice', groups: groups.slice(0, 32), groupCount: 1000 });
  });

  it('keep the deciding groups, which are first', () => {
    const groups = ['a', 'b', 'c', 'd'];
    assert.deepEqual(decidingGroupsFirst(groups, ['d', 'x', 'b']), ['b', 'd', 'a', 'c']);
    assert.deepEqual(decidingGroupsFirst(groups, []), groups);
  });

  it('have a bounded length, whatever the texts', () => {
    const long = 'x'.repeat(1024 * 1024);
    const line = formatRecord(stamp, {
      ...record,
      message: long,
      who: { user: long, uid: long, groups: Array.from({ length: 100 }, () => long) },
      reason: long,
      votes: Array.from({ length: 100 }, () => ({ uid: 'v-1', voter: long, decision: 'Approve', reason: long })),
    });
    assert.ok(line.length < 128 * 1024, String(line.length));
    assert.match(JSON.parse(line).message, /^x{1024}… \(1048576 characters\)$/);
  });

  it('are one printable line each, which reads as it was written', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 40 }), (text) => {
        const line = formatRecord(stamp, { ...record, message: text, who: { user: text, groups: [text] } });
        assert.doesNotMatch(line, /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
        const parsed = JSON.parse(line);
        assert.equal(parsed.message, text);
        assert.deepEqual(parsed.who, { user: text, groups: [text] });
      }),
      { seed: 3, numRuns: 200 },
    );
  });

  it('escape lone surrogates, line separators, and escape codes', () => {
    const user = '\ud800 \u2028\u2029 \u001b[31m \u0000 \u009b \u202e \r\n';
    const line = formatRecord(stamp, { ...record, who: { user } });
    assert.match(line, /^[\x20-\x7e]+$/);
    assert.equal(JSON.parse(line).who.user, user);
  });
});

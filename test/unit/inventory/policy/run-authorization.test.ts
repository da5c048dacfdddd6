import assert from 'node:assert/strict';
import { accountName } from '../../../../src/api/inventory/names.ts';
import {
  parseComponentAccount,
  type RunAuthorization,
  writeAuthorizationViolation,
} from '../../../../src/inventory/policy/run-authorization.ts';
import { formatTime } from '../../../../src/kit/clock.ts';

const now = Date.UTC(2026, 10, 21, 12);
const running: RunAuthorization = {
  entry: { name: 'rt-1', uid: 'a' },
  component: 'network',
  phase: 'Running',
  credentialID: 'JTI=2',
};
const refreshed: RunAuthorization = {
  ...running,
  previousCredentialID: 'JTI=1',
  previousCredentialExpiresAt: formatTime(now + 60_000),
};
/** The server has revoked the credentials of the run, because the entry is being deleted. */
const { credentialID: _revoked, ...draining }: RunAuthorization = running;
const who = (credentialId: string | undefined, more: object = {}) => ({
  entryUid: 'a',
  component: 'network',
  credentialId,
  ...more,
});

describe('write authorization', () => {
  const cases: [string, RunAuthorization | undefined, ReturnType<typeof who>, RegExp | undefined][] = [
    ['the credential of the current run', running, who('JTI=2'), undefined],
    ['the previous credential until it expires', refreshed, who('JTI=1'), undefined],
    ['the refreshed credential', refreshed, who('JTI=2'), undefined],
    [
      'the expired previous credential',
      { ...refreshed, previousCredentialExpiresAt: formatTime(now) },
      who('JTI=1'),
      /use the token in the answer to the latest heartbeat/,
    ],
    [
      'the previous credential without an expiry',
      { ...running, previousCredentialID: 'JTI=1' },
      who('JTI=1'),
      /use the token in the answer to the latest heartbeat/,
    ],
    ['the credential of another run', running, who('JTI=3'), /must use the token of its own call/],
    ['no credential', running, who(undefined), /provided no credential ID.*use Kubernetes 1[.]34/],
    ['no credential, and none in the record', draining, who(undefined), /provided no credential ID/],
    ['every credential while the entry is being deleted', draining, who('JTI=2'), /is being deleted; stop, and report/],
    ['a run that has ended', { ...running, phase: 'Idle' }, who('JTI=2'), /network has no active run.*; stop/],
    ['a run that has answered', { ...running, phase: 'Applying' }, who('JTI=2'), /network has no active run.*; stop/],
    ['no record', undefined, who('JTI=2'), /network has no run for this entry/],
    ['the record of another entry', running, who('JTI=2', { entryUid: 'b' }), /network has no run for this entry/],
    ['the record of another component', running, who('JTI=2', { component: 'cluster' }), /cluster has no run for this/],
  ];
  for (const [what, record, presented, expected] of cases) {
    it(`${expected ? 'rejects' : 'accepts'} ${what}`, () => {
      const violation = writeAuthorizationViolation(record, presented, now);
      if (!expected) return assert.equal(violation, undefined);
      assert.deepEqual([violation?.code, violation?.status], ['NoSuchRun', 403]);
      assert.match(violation?.message ?? '', expected);
    });
  }
});

describe('the account of a component', () => {
  const uid = '0b0e3c1e-8b7e-4c7c-9a63-4c1f7a1f0001';
  const account = `system:serviceaccount:fleet:${accountName(uid, 'network')}`;

  it('names its namespace, entry, and component', () => {
    assert.deepEqual(parseComponentAccount(account), { namespace: 'fleet', entryUid: uid, component: 'network' });
  });

  for (const other of [
    'alice',
    '',
    'system:serviceaccount:fleet:default',
    'system:serviceaccount:fleet:inventory-sync',
    `${account}.more`,
    `x${account}`,
    `system:serviceaccount:a:b:${accountName(uid, 'network')}`,
  ]) {
    it(`is not "${other}"`, () => assert.equal(parseComponentAccount(other), undefined));
  }
});

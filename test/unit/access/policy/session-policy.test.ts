import assert from 'node:assert/strict';
import { sessionOf } from '../../../../src/access/policy/session-policy.ts';

describe('the session of a grant', () => {
  const session = { via: 'Gateway', record: 'Required', recordInput: true } as const;

  it('is recorded as the template says', () => assert.deepEqual(sessionOf({ session }), session));

  it('does not require the recorder in an emergency, because its failure would lock people out', () =>
    assert.deepEqual(sessionOf({ session }, true), { ...session, record: 'BestEffort' }));

  for (const isEmergency of [false, true]) {
    it(`is not recorded by default${isEmergency ? ', in an emergency neither' : ''}`, () => {
      assert.deepEqual(sessionOf({ session: { via: 'Gateway' } }, isEmergency), { via: 'Gateway' });
      assert.deepEqual(sessionOf({ session: { via: 'Gateway', record: 'Off' } }, isEmergency), { via: 'Gateway' });
    });
  }

  it('has no field for input that is not recorded', () =>
    assert.deepEqual(sessionOf({ session: { ...session, recordInput: false } }), {
      via: 'Gateway',
      record: 'Required',
    }));
});

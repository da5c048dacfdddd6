import assert from 'node:assert/strict';
import { reconcileRunKind } from '../../../../src/api/inventory/reconcile-run.ts';
import { celRefusals } from '../../../support/cel-rules.ts';

describe('the rule for credentials of a record', () => {
  const record = { entry: { name: 'rt-1', uid: 'u1' }, component: 'network', seq: 1 };
  const credentials: [string, object][] = [
    ['one', { credentialID: 'JTI=2' }],
    ['the one before it', { previousCredentialID: 'JTI=1' }],
    ['both', { credentialID: 'JTI=2', previousCredentialID: 'JTI=1' }],
  ];
  for (const [title, held] of credentials) {
    for (const phase of ['Running', 'Applying', 'Idle']) {
      it(`${phase === 'Running' ? 'accepts' : 'rejects'} ${title} in ${phase}`, () => {
        const refused = celRefusals(reconcileRunKind.structural.spec, { ...record, phase, ...held }, record);
        assert.deepEqual(
          refused,
          phase === 'Running' ? [] : ['credentialID and previousCredentialID are allowed only in phase Running'],
        );
      });
    }
  }
});

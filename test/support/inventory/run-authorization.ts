import type { RunRecord } from '../../../src/inventory/core/run-record.ts';
import type { RunAuthorization } from '../../../src/inventory/policy/run-authorization.ts';
import { formatTime } from '../../../src/kit/clock.ts';

/** A record as write authorization reads it. */
export const authorizationOf = ({
  entry,
  component,
  phase,
  credentialId,
  previousCredential,
}: RunRecord): RunAuthorization => ({
  entry,
  component,
  phase,
  ...(credentialId === undefined ? {} : { credentialID: credentialId }),
  ...(previousCredential && {
    previousCredentialID: previousCredential.id,
    previousCredentialExpiresAt: formatTime(previousCredential.expiresAtMs),
  }),
});

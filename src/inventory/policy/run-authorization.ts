import { accountPrefix } from '../../api/inventory/names.ts';
import type { ReconcileRun } from '../../api/inventory/reconcile-run.ts';
import { parseTime } from '../../kit/clock.ts';
import { noSuchRunCode, type Violation } from './violation.ts';

/** The ServiceAccount of a component for one entry. */
interface ComponentAccount {
  readonly namespace: string;
  readonly entryUid: string;
  readonly component: string;
}

const accountPattern = new RegExp(`^system:serviceaccount:([^:]+):${accountPrefix}([^.:]+)[.]([^.:]+)$`);

/** Parses a user name; undefined if it does not have the form of a component's account. Does not check that the account exists. */
export function readComponentAccount(username: string): ComponentAccount | undefined {
  const [, namespace, entryUid, component] = accountPattern.exec(username) ?? [];
  return namespace && entryUid && component ? { namespace, entryUid, component } : undefined;
}

/** The fields of a run record that authorize writes. */
export type RunAuthorization = Pick<
  ReconcileRun['spec'],
  'entry' | 'component' | 'phase' | 'credentialID' | 'previousCredentialID' | 'previousCredentialExpiresAt'
>;

/** The component that writes, and the ID of its token. */
interface WriterCredential {
  readonly entryUid: string;
  readonly component: string;
  /** Value of `authentication.kubernetes.io/credential-id`; undefined if the API server provides none. */
  readonly credentialId: string | undefined;
}

/**
 * Checks that the record is Running, and that the token belongs to it: its current token, or the previous one before its expiry. `record`
 * is the latest stored record; undefined if there is none. `nowMs`: epoch milliseconds. Undefined if the write is authorized.
 */
export function writeAuthorizationViolation(
  record: RunAuthorization | undefined,
  writer: WriterCredential,
  nowMs: number,
): Violation | undefined {
  const { entryUid, component, credentialId } = writer;
  const violation = (problem: string): Violation => ({
    code: noSuchRunCode,
    message: `${problem}; a component may only write with the token of its current run; answer Retry and wait for the next run`,
    status: 403,
  });
  if (!record || record.entry.uid !== entryUid || record.component !== component) {
    return violation(`component ${component} has no run for this entry`);
  }
  if (record.phase !== 'Running') return violation(`component ${component} has no active run for this entry`);
  if (credentialId === undefined) return violation('the API server provided no credential ID for this token');
  if (credentialId === record.credentialID) return undefined;
  if (credentialId !== record.previousCredentialID) {
    return violation(`this token belongs to another run of component ${component}`);
  }
  const expiresAtMs = parseTime(record.previousCredentialExpiresAt ?? '');
  if (expiresAtMs !== undefined && nowMs < expiresAtMs) return undefined;
  return violation('this token was refreshed and has expired');
}

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

const pattern = new RegExp(`^system:serviceaccount:([^:]+):${accountPrefix}([^.:]+)[.]([^.:]+)$`);

/** Parses a user name; undefined if it is not the account of a component. */
export function readComponentAccount(username: string): ComponentAccount | undefined {
  const [, namespace, entryUid, component] = pattern.exec(username) ?? [];
  return namespace && entryUid && component ? { namespace, entryUid, component } : undefined;
}

/** The fields of a run record that authorize writes. */
export type RunAuthorization = Pick<
  ReconcileRun['spec'],
  'entry' | 'component' | 'phase' | 'credentialID' | 'previousCredentialID' | 'previousCredentialExpiresAt'
>;

/** The writer and its credential. */
interface Presented {
  readonly entryUid: string;
  readonly component: string;
  /** Value of `authentication.kubernetes.io/credential-id`; undefined if the API server provides none. */
  readonly credentialId: string | undefined;
}

/**
 * Checks that the credential is that of the current run: the one in the record, or the previous one until it expires. `record` is the
 * latest stored record; undefined if there is none.
 */
export function writeAuthorizationViolation(
  record: RunAuthorization | undefined,
  who: Presented,
  nowMs: number,
): Violation | undefined {
  const { entryUid, component, credentialId } = who;
  const refused = (why: string): Violation => ({
    code: noSuchRunCode,
    message: `${why}; a component may only write with the token of its current run; answer Retry and wait for the next run`,
    status: 403,
  });
  if (!record || record.entry.uid !== entryUid || record.component !== component) {
    return refused(`component ${component} has no run for this entry`);
  }
  if (record.phase !== 'Running') return refused(`component ${component} has no active run for this entry`);
  if (credentialId === undefined) return refused('the API server provided no credential ID for this token');
  if (credentialId === record.credentialID) return undefined;
  if (credentialId !== record.previousCredentialID) {
    return refused(`this token belongs to another run of component ${component}`);
  }
  const until = parseTime(record.previousCredentialExpiresAt ?? '');
  if (until !== undefined && nowMs < until) return undefined;
  return refused('this token was refreshed and has expired');
}

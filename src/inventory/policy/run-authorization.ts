import { accountPrefix } from '../../api/inventory/names.ts';
import type { ReconcileRun } from '../../api/inventory/reconcile-run.ts';
import { parseTime } from '../../kit/clock.ts';
import { noSuchRunCode, type Violation } from './violation.ts';

/** Whose calls come from an account of a component. */
interface ComponentAccount {
  readonly namespace: string;
  readonly entryUid: string;
  readonly component: string;
}

const pattern = new RegExp(`^system:serviceaccount:([^:]+):${accountPrefix}([^.:]+)[.]([^.:]+)$`);

/** Reads a user name; undefined for everybody who is no component. */
export function readComponentAccount(username: string): ComponentAccount | undefined {
  const [, namespace, entryUid, component] = pattern.exec(username) ?? [];
  return namespace && entryUid && component ? { namespace, entryUid, component } : undefined;
}

/** What a record says of the credentials that may write. */
export type RunAuthorization = Pick<
  ReconcileRun['spec'],
  'entry' | 'component' | 'phase' | 'credentialID' | 'previousCredentialID' | 'previousCredentialExpiresAt'
>;

/** Who writes, with which credential. */
interface Presented {
  readonly entryUid: string;
  readonly component: string;
  /** As in `authentication.kubernetes.io/credential-id`; undefined where the API server says none. */
  readonly credentialId: string | undefined;
}

/**
 * Whether the credential is that of the run that is on: the one of the record, or the one before it until that expires. `record` is
 * the latest one stored; undefined when there is none.
 */
export function writeAuthorizationViolation(
  record: RunAuthorization | undefined,
  who: Presented,
  nowMs: number,
): Violation | undefined {
  const { entryUid, component, credentialId } = who;
  const refused = (why: string): Violation => ({
    code: noSuchRunCode,
    message: `${why}; a component writes with the token of a run, while it lasts: answer Retry and wait for the next run`,
    status: 403,
  });
  if (!record || record.entry.uid !== entryUid || record.component !== component) {
    return refused(`there is no run of component ${component} for this entry`);
  }
  if (record.phase !== 'Running') return refused(`no run of component ${component} is on`);
  if (credentialId === undefined) return refused('the API server does not say which credential this is');
  if (credentialId === record.credentialID) return undefined;
  if (credentialId !== record.previousCredentialID) {
    return refused(`this token is of another run of component ${component} than the one that is on`);
  }
  const until = parseTime(record.previousCredentialExpiresAt ?? '');
  if (until !== undefined && nowMs < until) return undefined;
  return refused('this token was refreshed, and the time of the old one is over');
}

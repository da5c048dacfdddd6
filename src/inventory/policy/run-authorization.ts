import { accountPrefix } from '../../api/inventory/names.ts';
import type { ReconcileRun } from '../../api/inventory/reconcile-run.ts';
import { parseTime } from '../../kit/clock.ts';
import { noSuchRunCode, type Violation } from './violation.ts';

interface ComponentAccount {
  readonly namespace: string;
  readonly entryUid: string;
  readonly component: string;
}

const accountPattern = new RegExp(`^system:serviceaccount:([^:]+):${accountPrefix}([^.:]+)[.]([^.:]+)$`);

/** Undefined if the name has another form. Does not check that the account exists. */
export function parseComponentAccount(username: string): ComponentAccount | undefined {
  const [, namespace, entryUid, component] = accountPattern.exec(username) ?? [];
  return namespace && entryUid && component ? { namespace, entryUid, component } : undefined;
}

export type RunAuthorization = Pick<
  ReconcileRun['spec'],
  'entry' | 'component' | 'phase' | 'credentialID' | 'previousCredentialID' | 'previousCredentialExpiresAt'
>;

interface WriterCredential {
  readonly entryUid: string;
  readonly component: string;
  /** `authentication.kubernetes.io/credential-id`, if the API server provides it. */
  readonly credentialId: string | undefined;
}

/**
 * Allows a write while the record is Running, with its current token or, before
 * `previousCredentialExpiresAt`, the previous one; otherwise `NoSuchRun`. `record`: the latest
 * stored one.
 */
export function writeAuthorizationViolation(
  record: RunAuthorization | undefined,
  writer: WriterCredential,
  nowMs: number,
): Violation | undefined {
  const { entryUid, component, credentialId } = writer;
  if (!record || record.entry.uid !== entryUid || record.component !== component) {
    return violation(`component ${component} has no run for this entry; only the current run may write; ${stopAdvice}`);
  }
  if (record.phase !== 'Running') {
    return violation(
      `component ${component} has no active run for this entry; a run that has ended may not write; ${stopAdvice}`,
    );
  }
  if (credentialId === undefined) {
    return violation(
      'the API server provided no credential ID for this token, which write authorization requires; use Kubernetes 1.34 or later',
    );
  }
  if (record.credentialID === undefined) {
    return violation(
      `the run of component ${component} may no longer write, because the entry is being deleted; stop, and report its outcome`,
    );
  }
  if (credentialId === record.credentialID) return undefined;
  if (credentialId !== record.previousCredentialID) {
    return violation(
      `this token is not the current one of component ${component}; a run must use the token of its own call, or the newer one in the answer to a heartbeat; if the run has ended, ${stopAdvice}`,
    );
  }
  const expiresAtMs = parseTime(record.previousCredentialExpiresAt ?? '');
  if (expiresAtMs !== undefined && nowMs < expiresAtMs) return undefined;
  return violation(
    'a heartbeat replaced this token, and the time in which it could still write has passed; use the token in the answer to the latest heartbeat that contains one',
  );
}

const stopAdvice = 'stop, and wait for the next call';

const violation = (message: string): Violation => ({ code: noSuchRunCode, message, status: 403 });

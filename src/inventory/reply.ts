import { readOutcome } from '../api/inventory/contract/outcome.ts';
import { readAccepted } from '../api/inventory/contract/report.ts';
import type { ReconcileRequest } from '../api/inventory/contract/request.ts';
import type { FieldError } from '../api/schema/read.ts';
import type { Reply } from './ports.ts';

/** `WrongRun` if the answer names another run, `InvalidOutcome` if it is invalid. */
export function outcomeReply(answer: unknown, { run, operation }: ReconcileRequest): Reply {
  const read = readOutcome(answer, { id: run.id, operation });
  if (read.ok) return { kind: 'outcome', outcome: read.value };
  const isOtherRun = read.errors.some(({ field }) => field === 'run');
  return { kind: 'failed', code: isOtherRun ? 'WrongRun' : 'InvalidOutcome', message: errorText(read.errors) };
}

/** The reply for a 202; `InvalidOutcome` if it is invalid. */
export function acceptedReply(answer: unknown): Reply {
  const read = readAccepted(answer);
  if (!read.ok) return { kind: 'failed', code: 'InvalidOutcome', message: errorText(read.errors) };
  const { leaseSeconds } = read.value;
  return { kind: 'accepted', heartbeatTimeoutMs: leaseSeconds === undefined ? undefined : leaseSeconds * 1000 };
}

const errorText = (errors: readonly FieldError[]): string =>
  errors.map(({ field, message }) => `${field || 'the answer'} ${message}`).join('; ');

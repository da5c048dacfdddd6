import type { RunRecord } from '../../../src/inventory/core/run-record.ts';

/** The record of the first run of component network, which is active. */
export const runRecordOf = (entry: RunRecord['entry'], fields: Partial<RunRecord> = {}): RunRecord => ({
  entry,
  component: 'network',
  seq: 1,
  phase: 'Running',
  operation: 'reconcile',
  reasons: ['Created'],
  inputsDigest: undefined,
  credentialId: undefined,
  previousCredential: undefined,
  startedAtMs: undefined,
  asynchronous: false,
  deadlineMs: undefined,
  attempt: 0,
  nextAtMs: undefined,
  heldBy: undefined,
  lastOutcome: undefined,
  history: [],
  ...fields,
});

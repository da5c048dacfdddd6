import { maxColumnText } from '../../api/inventory/fields.ts';
import {
  clusterInventories,
  componentLabel,
  entryUidLabel,
  reconcileRuns,
  runName,
} from '../../api/inventory/names.ts';
import { type ReconcileRun, reconcileRunKind } from '../../api/inventory/reconcile-run.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { formatMicroTime, formatTime, parseTime } from '../../kit/clock.ts';
import { shorten } from '../../kit/shorten.ts';
import type { Projected } from '../../kube/store.ts';
import type { LastOutcome, PastRun, RunRecord, StoredRecord } from '../core/run-record.ts';
import { whyText } from '../core/triggers.ts';

export interface RunView extends StoredRecord, Projected {
  readonly name: string;
}

/** Undefined if the ReconcileRun is invalid, or its name is not `runName`. */
export function recordIn(object: KubeObject): StoredRecord | undefined {
  const read = readObject(reconcileRunKind, object);
  if (!read.ok) return undefined;
  const { metadata, spec } = read.value;
  const { namespace, name, resourceVersion } = metadata;
  // Write authorization reads the record by this name, so ignore other names.
  if (!namespace || !resourceVersion || name !== runName(spec.entry, spec.component)) return undefined;
  return { record: recordOf(spec, namespace), resourceVersion };
}

function recordOf(spec: ReconcileRun['spec'], namespace: string): RunRecord {
  const previousEnd = parseInstant(spec.previousCredentialExpiresAt);
  return {
    entry: { namespace, name: spec.entry.name, uid: spec.entry.uid },
    component: spec.component,
    seq: spec.seq,
    phase: spec.phase,
    operation: spec.operation,
    reasons: spec.reasons,
    inputsDigest: spec.inputsDigest,
    credentialId: spec.credentialID,
    previousCredential:
      spec.previousCredentialID === undefined || previousEnd === undefined
        ? undefined
        : { id: spec.previousCredentialID, expiresAtMs: previousEnd },
    startedAtMs: parseInstant(spec.startedAt),
    asynchronous: spec.asynchronous,
    deadlineMs: parseInstant(spec.leaseUntil),
    attempt: spec.attempt,
    nextAtMs: parseInstant(spec.nextAt),
    heldBy: spec.heldBy,
    lastOutcome: spec.lastOutcome && lastOutcomeOf(spec.lastOutcome),
    history: spec.history.map(pastRunOf),
  };
}

function lastOutcomeOf(last: NonNullable<ReconcileRun['spec']['lastOutcome']>): LastOutcome {
  return {
    seq: last.seq,
    outcome: last.outcome,
    reason: last.reason,
    message: last.message,
    missing: last.missing ?? [],
    endedAtMs: parseInstant(last.endedAt) ?? 0,
    sinceMs: parseInstant(last.since ?? last.endedAt) ?? 0,
    durationMs: last.durationMillis,
  };
}

function pastRunOf(past: ReconcileRun['spec']['history'][number]): PastRun {
  return {
    seq: past.seq,
    operation: past.operation,
    reasons: past.reasons,
    outcome: past.outcome,
    reason: past.reason,
    startedAtMs: parseInstant(past.startedAt) ?? 0,
    durationMs: past.durationMillis,
  };
}

const parseInstant = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseTime(text);

/** The entry owns it, so garbage collection deletes it after the entry. */
export function runObject(record: RunRecord): KubeObject {
  const { entry, component } = record;
  return {
    apiVersion: apiVersionOf(reconcileRuns),
    kind: reconcileRuns.kind,
    metadata: {
      name: runName(entry, component),
      namespace: entry.namespace,
      labels: { [entryUidLabel]: entry.uid, [componentLabel]: component },
      ownerReferences: [
        {
          apiVersion: apiVersionOf(clusterInventories),
          kind: clusterInventories.kind,
          name: entry.name,
          uid: entry.uid,
        },
      ],
    },
    spec: withoutNulls(specPatch(record)),
  };
}

/** A merge patch of the spec; absent fields are null. */
export function specPatch(record: RunRecord): Record<string, unknown> {
  const { entry, lastOutcome, previousCredential, history } = record;
  return {
    entry: { name: entry.name, uid: entry.uid },
    component: record.component,
    seq: record.seq,
    phase: record.phase,
    operation: record.operation,
    reasons: record.reasons,
    why: record.reasons.length > 0 ? shorten(whyText(record.reasons), maxColumnText) : null,
    inputsDigest: record.inputsDigest ?? null,
    credentialID: record.credentialId ?? null,
    previousCredentialID: previousCredential?.id ?? null,
    previousCredentialExpiresAt: timeOrNull(previousCredential?.expiresAtMs),
    startedAt: timeOrNull(record.startedAtMs),
    asynchronous: record.asynchronous,
    leaseUntil: timeOrNull(record.deadlineMs),
    attempt: record.attempt,
    nextAt: timeOrNull(record.nextAtMs),
    heldBy: record.heldBy ?? null,
    next: nextText(record),
    lastOutcome: lastOutcome
      ? {
          seq: lastOutcome.seq,
          outcome: lastOutcome.outcome,
          reason: lastOutcome.reason ?? null,
          message: lastOutcome.message ?? null,
          missing: lastOutcome.missing.length > 0 ? lastOutcome.missing : null,
          endedAt: timeOrNull(lastOutcome.endedAtMs),
          since: timeOrNull(lastOutcome.sinceMs),
          durationMillis: wholeMillis(lastOutcome.durationMs),
        }
      : null,
    history: history.map(pastRun),
  };
}

/** When the next run starts, in words. A trigger may start it earlier; triggers are not stored. */
function nextText({ phase, asynchronous, deadlineMs, heldBy, lastOutcome, nextAtMs }: RunRecord): string {
  if (phase === 'Running' && asynchronous && deadlineMs !== undefined) {
    // Maybe a little early: small changes of the deadline are not stored.
    return `once the current run ends; without a report, at about ${formatTime(deadlineMs)}`;
  }
  if (phase !== 'Idle') return 'once the current run ends';
  if (heldBy !== undefined) return heldTexts[heldBy];
  if (nextAtMs === undefined || nextAtMs <= (lastOutcome?.endedAtMs ?? 0)) return 'at once';
  return `at ${formatTime(nextAtMs)} or earlier`;
}

const heldTexts: Readonly<Record<NonNullable<RunRecord['heldBy']>, string>> = {
  Suspended: 'none: suspended by spec.suspend of the entry',
  Disabled: 'none: the entry disables the component',
  NotApplicable: 'none: the component does not apply to the entry',
  TooLarge: 'none: the entry is too large',
  RegistrationRefused: 'none: the registration is refused',
  Unreachable: 'once the endpoint accepts calls; probed again within 30 s',
};

const pastRun = (past: PastRun) => ({
  seq: past.seq,
  operation: past.operation,
  reasons: past.reasons,
  outcome: past.outcome,
  // A merge patch replaces a list as a whole, so a null in it would be stored.
  ...(past.reason === undefined ? {} : { reason: past.reason }),
  startedAt: timeOrNull(past.startedAtMs),
  durationMillis: wholeMillis(past.durationMs),
});

/** RFC 3339 with microseconds. */
const timeOrNull = (instantMs: number | undefined): string | null =>
  instantMs === undefined ? null : formatMicroTime(instantMs);
const wholeMillis = (durationMs: number): number => Math.max(0, Math.round(durationMs));

/** A create does not accept nulls. Those inside `missing` are data and stay. */
function withoutNulls(patch: Record<string, unknown>): Record<string, unknown> {
  const strip = (object: object): Record<string, unknown> =>
    Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
  const { lastOutcome, ...rest } = strip(patch);
  return typeof lastOutcome === 'object' && lastOutcome !== null ? { ...rest, lastOutcome: strip(lastOutcome) } : rest;
}

import type { InventoryCode } from '../../api/codes.ts';
import { describeState } from '../../api/inventory/describe-state.ts';
import { clusterInventories } from '../../api/inventory/names.ts';
import { describe } from '../../kit/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Log } from '../../observe/log.ts';
import type { Problem, RejectedReportCode } from '../core/memory.ts';
import type { LastOutcome, RunRecord } from '../core/run-record.ts';
import { whyText } from '../core/triggers.ts';
import type { Entry, EntryRef } from '../entry.ts';
import { type ComponentKey, keyText, runId } from '../key.ts';
import type { CallFailureCode } from '../ports.ts';
import type { InventoryMetrics } from './metrics.ts';

/** These get a Warning: the call failed, or a write was rejected. So does every Failed. */
const warningReasons: Readonly<Record<CallFailureCode | 'Unreachable' | 'NotWritten' | 'NotStored', true>> = {
  Unreachable: true,
  Timeout: true,
  Cut: true,
  TooLarge: true,
  NotJson: true,
  InvalidOutcome: true,
  WrongRun: true,
  Refused: true,
  UnexpectedStatus: true,
  Crashed: true,
  NotWritten: true,
  NotStored: true,
};

/** Messages may change with each run, so only a new message of Failed needs an Event. */
const needsEvent = ({ outcome, reason, message }: LastOutcome, before: LastOutcome | undefined): boolean =>
  outcome !== before?.outcome || reason !== before.reason || (outcome === 'Failed' && message !== before.message);

/** Handling the key threw an error that no retry explains. */
export const internalError = 'InternalError';

type WarningCode = Extract<InventoryCode, 'MissingAlreadySatisfied' | 'Livelock' | 'ReportRejected'>;

interface RunReporterDeps {
  readonly onStatusChange: (entryUid: string) => void;
  readonly metrics: InventoryMetrics;
  readonly events: EventRecorder;
  readonly log: Log;
}

/** Reports runs in logs, metrics, and Events, and enqueues entries. */
export class RunReporter {
  readonly #deps: RunReporterDeps;

  constructor(deps: RunReporterDeps) {
    this.#deps = deps;
  }

  statusChanged(key: ComponentKey): void {
    this.#deps.onStatusChange(key.entryUid);
  }

  warn({ ref }: Entry, key: ComponentKey, code: WarningCode, message: string): void {
    const { log } = this.#deps;
    log.warn(message, { code, entry: `${ref.namespace}/${ref.name}`, component: key.component });
    this.#event(ref, 'Warning', code, `${key.component}: ${message}`);
  }

  /** Reports the end of a run if `after` has a new outcome; an Event only if `needsEvent`. */
  recordStored(key: ComponentKey, before: RunRecord, after: RunRecord): void {
    const last = after.lastOutcome;
    if (!last || last.seq === before.lastOutcome?.seq) return;
    const { log, metrics } = this.#deps;
    const { entry, component } = after;
    metrics.ended(component, last.outcome, last.reason ?? before.reasons[0] ?? '', last.durationMs);
    log.info('run ended', {
      run: runId(key, last.seq),
      entry: `${entry.namespace}/${entry.name}`,
      component,
      operation: before.operation,
      reasons: before.reasons,
      inputs: before.inputsDigest,
      outcome: last.outcome,
      reason: last.reason,
      message: last.message,
      missing: last.missing.map(({ path, want }) => `${path} ${want}`),
      durationMs: Math.round(last.durationMs),
    });
    if (!needsEvent(last, before.lastOutcome)) return;
    const isWarning = last.outcome === 'Failed' || Object.hasOwn(warningReasons, last.reason ?? '');
    const what = describeState({ ...last, state: last.outcome });
    this.#event(
      entry,
      isWarning ? 'Warning' : 'Normal',
      last.outcome,
      `${component}: ${what}; started because: ${whyText(before.reasons)}`,
    );
  }

  /** `waitedMs`: since its oldest trigger without a delay. */
  dispatched(record: RunRecord, lane: number, waitedMs: number): void {
    const { metrics, log } = this.#deps;
    metrics.dispatched(lane, waitedMs);
    log.debug('run started', {
      run: runId({ entryUid: record.entry.uid, component: record.component }, record.seq),
      entry: `${record.entry.namespace}/${record.entry.name}`,
      component: record.component,
      reasons: record.reasons,
      waitedMs: Math.round(waitedMs),
    });
  }

  notCalled(key: ComponentKey, message: string): void {
    this.#deps.log.warn('the server could not call the component; it retries', { key: keyText(key), error: message });
  }

  reportRejected(component: string, code: RejectedReportCode): void {
    this.#deps.metrics.reportRejected(component, code);
  }

  conflict(): void {
    this.#deps.metrics.conflict();
  }

  /** Returns the status to show. */
  keyFailed(key: ComponentKey, error: unknown): Problem {
    const message = describe(error);
    this.#deps.log.error('failed to handle the events of a component; the server retries', {
      key: keyText(key),
      error: message,
    });
    const shown = `the server failed to handle the component: ${message}; the server retries; see its log`;
    return { state: 'Failed', reason: internalError, message: shown };
  }

  #event(entry: EntryRef, type: 'Normal' | 'Warning', reason: string, note: string): void {
    this.#deps.events.record({
      regarding: regarding(clusterInventories, entry),
      type,
      reason,
      action: 'Reconcile',
      note,
    });
  }
}

import type { ComponentState } from '../../api/inventory/cluster-inventory.ts';
import { alreadySatisfied, describeState } from '../../api/inventory/describe-state.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import { abandonAnnotation, forceAnnotation } from '../../api/inventory/names.ts';
import { formatTime } from '../../kit/clock.ts';
import { abandonmentText, type Entry, hasUnrecordedAbandonment } from '../entry.ts';
import type { Facts, NotRunReason } from './facts.ts';
import type { EndpointProblem, Memory } from './memory.ts';
import { type LastOutcome, type RunRecord, wasNotAccepted } from './run-record.ts';
import { isTimer, type Trigger, triggerReasons } from './triggers.ts';

/** A component in the status of its entry. */
export interface KeyStatus {
  readonly state: ComponentState;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  /** Of the last run that ended; undefined if the inputs changed during it, or are unknown. */
  readonly observedInputs: string | undefined;
  /** Message of the entry's condition Livelock. */
  readonly livelock: string | undefined;
}

/** A status that does not come from a run. */
export const plainStatus = (state: KeyStatus['state'], reason: string, message?: string): KeyStatus => ({
  state,
  reason,
  message,
  missing: [],
  observedInputs: undefined,
  livelock: undefined,
});

/**
 * Why the component is in its state: the first rule that applies. `endpoint`: the failed call that
 * opened the circuit breaker, unless it is closed.
 */
export function statusOf(facts: Facts, endpoint: EndpointProblem | undefined): KeyStatus {
  const { entry, registration, memory, stored } = facts;
  const written = statusFromEntry(entry, registration.name);
  const known = ofRuns(facts, written);
  const found = { ...known, livelock: memory.livelock };
  const isWaiting = memory.pending || memory.run || !stored || stored.record.heldBy === 'Unreachable';
  const reached = endpoint && isWaiting ? withEndpointProblem(found, endpoint, written, registration.name) : found;
  const shown = memory.problem ? { ...reached, missing: [], ...memory.problem } : reached;
  // A call that was not accepted observed no inputs, so the entry's `observedInputs` stays.
  const observedInputs = wasNotAccepted(shown.reason) ? written?.observedInputs : shown.observedInputs;
  const explained = withSuspendedTeardown(withCause({ ...shown, observedInputs }, facts), facts);
  // A message of the entry has the notice already.
  const isWritten = known === written && explained.message === written.message;
  return isWritten ? explained : withAbandonment(explained, entry, registration.name);
}

/** From the current run, or the last outcome. Done counts only for the current inputs. */
function ofRuns({ stored, digest, mayRun, memory }: Facts, written: KeyStatus | undefined): KeyStatus {
  const record = stored?.record;
  const last = record?.lastOutcome;
  const observedInputs = record && observedInputsOf(record, memory);
  const statusWith = (state: KeyStatus['state'], { reason, message, missing = [] }: StatusDetail): KeyStatus => ({
    state,
    reason,
    message,
    missing,
    observedInputs,
    livelock: undefined,
  });
  const isSuspended = mayRun.may === 'no' && mayRun.why === 'Suspended';
  if (mayRun.may === 'no' && mayRun.why !== 'Suspended')
    return statusWith(stateWithoutRun[mayRun.why], { reason: mayRun.why });
  if (mayRun.may === 'delete' || (record?.operation === 'delete' && !(isSuspended && record.phase === 'Idle')))
    return statusWith('Deleting', record ? deletionDetail(record, memory.rejectedReport) : noDetail);
  const shown = ofLastOutcome();
  const isAsynchronous = record?.asynchronous && record.phase !== 'Idle';
  return isAsynchronous && !isTrueDuringRun(shown, digest)
    ? statusWith('Progressing', runningDetail(record, memory.rejectedReport))
    : shown;

  function ofLastOutcome(): KeyStatus {
    const isCurrent = written?.observedInputs === digest && !wasNotAccepted(written.reason) && !isSuspended;
    if (record && isCurrent && isBrieflyBusy(record)) return written;
    if (last?.outcome === 'Done' && observedInputs === digest) return statusWith('Done', last);
    if (isSuspended) return statusWith('Suspended', suspendedDetail(last));
    switch (last?.outcome) {
      case 'Done':
        return statusWith('Progressing', { reason: isOnlyForced(memory) ? 'Forced' : 'InputsChanged' });
      case 'NotReady':
      case 'Progressing':
        return statusWith(last.outcome, last);
      case 'Failed':
        return statusWith('Failed', withRemedy(last, `${repeatHint(record?.component ?? '')} to repeat the run`));
      case 'Retry':
        return statusWith('Retrying', last);
      default:
        return statusWith('Progressing', { reason: 'Pending' });
    }
  }
}

function observedInputsOf(record: RunRecord, { run }: Memory): string | undefined {
  return record.phase === 'Idle' || record.seq === record.lastOutcome?.seq
    ? record.inputsDigest
    : run?.start?.before.inputsDigest;
}

/** Whether the status holds during a run: Done, a run follows, or Progressing with these inputs. */
const isTrueDuringRun = ({ state, reason, observedInputs }: KeyStatus, digest: string): boolean =>
  state === 'Done' || isOutdatedReason(reason) || (state === 'Progressing' && observedInputs === digest && !reason);

/** Changes at most twice a run (rejected report, next heartbeat), so that it costs few writes. */
const runningDetail = ({ startedAtMs, lastOutcome }: RunRecord, rejected: Memory['rejectedReport']): StatusDetail => ({
  reason: 'Running',
  message: [
    startedAtMs === undefined ? 'running' : `running since ${formatTime(startedAtMs)}`,
    ...rejectionTexts(rejected),
    ...(lastOutcome ? [lastOutcomeText(lastOutcome)] : []),
  ].join('; '),
});

function rejectionTexts(rejected: Memory['rejectedReport']): readonly string[] {
  if (!rejected?.shown) return [];
  const { code, atMs } = rejected.shown;
  return [`report rejected (${code}) at ${formatTime(atMs)}, see the log of the component`];
}

/** Why the component is not Done. Ready says how a user resumes the entry. */
const suspendedDetail = (last: LastOutcome | undefined) => ({
  reason: 'Suspended',
  message: last === undefined ? 'no run has ended' : last.outcome === 'Done' ? 'a run is due' : lastOutcomeText(last),
});

const lastOutcomeText = (last: LastOutcome): string =>
  `last outcome: ${describeState({ ...last, state: last.outcome })}`;

/** What a teardown waits for: the current run, or what the last teardown reported. */
function deletionDetail(record: RunRecord, rejected: Memory['rejectedReport']): StatusDetail {
  const { component, operation, asynchronous, phase, startedAtMs, deadlineMs } = record;
  const isAsynchronous = phase !== 'Idle' && asynchronous && startedAtMs !== undefined && deadlineMs !== undefined;
  if (operation === 'delete')
    return isAsynchronous
      ? {
          reason: 'Running',
          message: ['tearing down', ...rejectionTexts(rejected), ...lastTeardownTexts(record)].join('; '),
        }
      : teardownDetail(record);
  if (!isAsynchronous) return noDetail;
  // Heartbeats do not extend a run that began before the deletion, so this is final.
  const found = `the teardown waits for the run that began at ${formatTime(startedAtMs)}; it ends at ${formatTime(deadlineMs)} at the latest`;
  return {
    reason: 'Running',
    message: [found, ...rejectionTexts(rejected), abandonHint(component)].join('; '),
  };
}

/** The teardown before the current run, with what a user can do about it. */
function lastTeardownTexts({ component, lastOutcome: last, history }: RunRecord): readonly string[] {
  const [previous] = history;
  if (last === undefined || previous?.seq !== last.seq || previous.operation !== 'delete') return [];
  return [lastOutcomeText(last), teardownRemedy(last, component)].filter((text) => text !== undefined);
}

/** The last teardown with its remedy, unless a later run was started. */
function teardownDetail({ component, seq, lastOutcome: last }: RunRecord): StatusDetail {
  if (last?.seq !== seq) return noDetail;
  const reason = last.reason ?? last.outcome;
  const remedy = teardownRemedy(last, component);
  return remedy === undefined ? { ...last, reason } : { ...withRemedy(last, remedy), reason };
}

const withRemedy = (last: LastOutcome, remedy: string): LastOutcome => ({
  ...last,
  message: last.message ? `${last.message}; ${remedy}` : remedy,
});

/** How a user repeats a Failed run. */
const repeatHint = (component: string): string => `annotate the entry with ${forceAnnotation(component)}=NEW-VALUE`;

/** For a teardown that failed, or waits for what already holds. */
function teardownRemedy({ outcome, reason, missing }: LastOutcome, component: string): string | undefined {
  if (outcome === 'Failed')
    return `${repeatHint(component)} to repeat the teardown, or with ${abandonAnnotation(component)}=REASON to finish without it`;
  if (reason === alreadySatisfied) return `${alreadySatisfiedRemedy(missing)}; ${abandonHint(component)}`;
  return outcome === 'Retry' && reason !== undefined ? abandonHint(component) : undefined;
}

/** The entry does not show which components read a path. */
export const alreadySatisfiedRemedy = (missing: readonly MissingInput[]): string =>
  missing.every(({ want }) => want === 'noReaders')
    ? 'while other objects use what the component created, the component must answer Retry instead of NotReady'
    : 'check how the component reads the entry';

const abandonHint = (component: string): string =>
  `to finish without the teardown, annotate the entry with ${abandonAnnotation(component)}=REASON`;

/** The inputs or the force annotation changed after Done. */
const isOutdatedReason = (reason: string | undefined): boolean => reason === 'InputsChanged' || reason === 'Forced';

function isOnlyForced({ run, pending }: Memory): boolean {
  const triggers: readonly Trigger[] = [...(run?.start?.triggers ?? []), ...(pending?.triggers ?? [])];
  return triggers.length > 0 && triggers.every((cause) => cause.reason === triggerReasons.forced || isTimer(cause));
}

/** A current status shows answers 429 or 503 after this many in a row, */
const shownBusyAnswers = 5;
/** or at once if the next call is further away than this. */
const shownBusyDelayMs = 60_000;

const isBrieflyBusy = ({ phase, attempt, nextAtMs, lastOutcome }: RunRecord): boolean =>
  lastOutcome?.reason === 'Busy' &&
  attempt < shownBusyAnswers &&
  (phase !== 'Idle' || (nextAtMs ?? 0) - lastOutcome.endedAtMs <= shownBusyDelayMs);

type StatusDetail = { readonly [Field in 'reason' | 'message' | 'missing']?: KeyStatus[Field] | undefined };

const noDetail: StatusDetail = {};

const stateWithoutRun: Readonly<Record<Exclude<NotRunReason, 'Suspended'>, KeyStatus['state']>> = {
  NotApplicable: 'NotApplicable',
  Disabled: 'NotApplicable',
  Abandoned: 'NotApplicable',
  TooLarge: 'Failed',
  RegistrationRefused: 'Failed',
};

/**
 * The endpoint of a waiting run accepts no calls, possibly those for other entries. If a probe for
 * this entry fails, the text stays: an outage costs the entry one write.
 */
function withEndpointProblem(
  status: KeyStatus,
  { code, message: found }: EndpointProblem,
  written: KeyStatus | undefined,
  component: string,
): KeyStatus {
  const remedy = status.state === 'Deleting' ? `; ${abandonHint(component)}` : '';
  const message = `the endpoint accepts no calls: ${found}; see: kubectl get componentreconciler ${component} -o wide${remedy}`;
  const isKnown = written?.message === message;
  if (wasNotAccepted(status.reason) ? !isKnown : !isOutdatedByOutage(status)) return status;
  return { ...status, state: status.state === 'Deleting' ? 'Deleting' : 'Retrying', reason: code, message };
}

/** It only says that a run follows, or why the last one failed. */
function isOutdatedByOutage({ state, reason }: KeyStatus): boolean {
  if (state === 'Progressing') return reason === 'Pending' || isOutdatedReason(reason);
  if (state === 'Deleting') return !teardownOutcomes.has(reason);
  return state === 'Retrying';
}

/** Reasons of Deleting that say what the component waits for, or that it gave up. */
const teardownOutcomes: ReadonlySet<string | undefined> = new Set(['Failed', 'NotReady', 'Progressing', 'Running']);

/** Says why a component does not apply, or is disabled. */
function withCause(status: KeyStatus, { entry: { mode }, registration: { modes, name } }: Facts): KeyStatus {
  if (status.reason === 'Disabled')
    return { ...status, message: `spec.components.${name}.enabled is false; set it to true to run the component` };
  if (status.reason !== 'NotApplicable') return status;
  return { ...status, message: modes.includes(mode) ? selectorMismatch : `runs only in mode ${modes.join(', ')}` };
}

export const selectorMismatch = 'its selector does not match the labels of the entry';

/** Says that the suspension keeps the teardown from starting. */
function withSuspendedTeardown(status: KeyStatus, { entry, stored }: Facts): KeyStatus {
  const waits = status.state === 'Done' || status.reason === 'Suspended';
  if (!entry.deleting || !entry.suspended || !waits) return status;
  const last = stored?.record.lastOutcome;
  const found = 'the entry is being deleted, but spec.suspend is true: the server starts no teardown';
  const remedy = 'set it to false to tear the component down';
  const why = last && last.outcome !== 'Done' ? `; ${lastOutcomeText(last)}` : '';
  return { ...status, state: 'Suspended', reason: 'Suspended', message: `${found}; ${remedy}${why}` };
}

/** Names who abandoned the component, or says why its abandon annotation has no effect. */
function withAbandonment(status: KeyStatus, entry: Entry, component: string): KeyStatus {
  if (status.reason === 'Abandoned') return { ...status, message: abandonmentText(entry, component) };
  if (!hasUnrecordedAbandonment(entry, component)) return status;
  const notice = `annotation ${abandonAnnotation(component)} has no effect, because the webhook recorded no user for it; set another reason`;
  return { ...status, message: status.message ? `${notice}; ${status.message}` : notice };
}

export function notRegisteredStatus({ deleting }: Pick<Entry, 'deleting'>, component: string): KeyStatus {
  const message = `component ${component} is not registered; register it again or, to leave what it created, abandon it: annotate the entry with ${abandonAnnotation(component)}=REASON`;
  return plainStatus(deleting ? 'Deleting' : 'NotApplicable', 'NotRegistered', message);
}

/** Possibly written by an earlier leader. */
function statusFromEntry(entry: Entry, component: string): KeyStatus | undefined {
  const found = entry.components.find(({ name }) => name === component);
  if (!found) return undefined;
  const { state, reason, message, missing = [], observedInputs } = found;
  return { state, reason, message, missing, observedInputs, livelock: undefined };
}

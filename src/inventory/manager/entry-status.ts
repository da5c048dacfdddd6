import { isDeepStrictEqual } from 'node:util';
import { type ConditionUpdate, mergeConditions } from '../../api/conditions.ts';
import type { ComponentState, ComponentStatus } from '../../api/inventory/cluster-inventory.ts';
import { describeState } from '../../api/inventory/describe-state.ts';
import { maxColumnText } from '../../api/inventory/fields.ts';
import { abandonAnnotation, entryConditions, maxEntryBytes } from '../../api/inventory/names.ts';
import type { Condition } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { shorten } from '../../kit/shorten.ts';
import { type EndpointProblem, type Inputs, type KeyState, type KeyStatus, plainStatus } from '../core/key-state.ts';
import { type LastOutcome, wasNotAccepted } from '../core/run-record.ts';
import {
  abandonHint,
  isOutdatedReason,
  lastOutcomeText,
  stateWithoutRun,
  suspendedDetail,
} from '../core/steps/transition.ts';
import { abandonmentText, type Entry, hasUnrecordedAbandonment } from '../entry.ts';
import { keyText } from '../key.ts';
import type { RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { mayRun } from './entry-snapshot.ts';
import type { KeyLoops } from './key-loop.ts';
import type { RegistrationLister } from './registrations.ts';

interface EntryStatusDeps {
  readonly registrations: RegistrationLister;
  readonly runs: RunStore;
  /** Undefined until this replica leads and all keys have their first events. */
  readonly loops: () => KeyLoops | undefined;
  readonly clock: Clock;
  /** The failed call that opened the circuit breaker; undefined unless it is open. */
  readonly endpointProblem: (component: string) => EndpointProblem | undefined;
  /** Undefined if the remote watches are healthy, null if there are none. */
  readonly remoteProblem: (entryUid: string) => string | undefined | null;
}

/** Further components are omitted. */
const maxComponentStatuses = 64;

const maxNameLength = 253;

/** A merge patch. A type alias, because an interface is not assignable to an index signature. */
type StatusPatch = Readonly<
  Record<
    'status',
    {
      readonly components?: readonly ComponentStatus[];
      readonly waitingFor?: string | null;
      readonly conditions?: readonly Condition[];
    }
  >
>;

export class EntryStatus {
  readonly #deps: EntryStatusDeps;

  constructor(deps: EntryStatusDeps) {
    this.#deps = deps;
  }

  /** Undefined if the entry already has it. */
  patch(entry: Entry): StatusPatch | undefined {
    const nowMs = this.#deps.clock.now();
    const statuses = this.#statuses(entry);
    const components = componentStatuses(statuses, entry.components, nowMs);
    const conditions = mergeConditions(entry.conditions, this.#conditions(entry, statuses), nowMs);
    const waitingFor = waitingForOf(conditions);
    const status = {
      ...(isDeepStrictEqual(components, sorted(entry.components)) ? {} : { components }),
      ...(waitingFor === entry.waitingFor ? {} : { waitingFor: waitingFor ?? null }),
      ...(conditions === entry.conditions ? {} : { conditions }),
    };
    return Object.keys(status).length === 0 ? undefined : { status };
  }

  #conditions(entry: Entry, statuses: KeyStatuses): ConditionUpdate<Condition>[] {
    const conditions: ConditionUpdate<Condition>[] = [readyOf(statuses, entry)];
    const livelock = livelockOf(statuses);
    if (livelock.status === 'True' || hasCondition(entry.conditions, entryConditions.livelock))
      conditions.push(livelock);
    const problem = this.#deps.remoteProblem(entry.ref.uid);
    const type = entryConditions.remoteWatchHealthy;
    if (problem === undefined) conditions.push({ type, status: 'True', reason: 'Watching', message: '' });
    else if (problem !== null) conditions.push({ type, status: 'False', reason: 'NotWatching', message: problem });
    return conditions;
  }

  #statuses(entry: Entry): KeyStatuses {
    const { registrations, runs, loops } = this.#deps;
    const statuses = new Map<string, KeyStatus>();
    for (const registration of registrations.all()) {
      if (statuses.size >= maxComponentStatuses) return statuses;
      const key = { entryUid: entry.ref.uid, component: registration.name };
      const loop = loops()?.get(keyText(key));
      const state = loop?.state;
      const record = runs.find(key)?.record;
      const isRecorded = record !== undefined;
      // Without a record, nothing is left to tear down. If its removal fails, the record stays.
      if (entry.deleting && !isRecorded) continue;
      const stored = statusFromEntry(entry, registration.name);
      const known = state?.status ?? (isRecorded ? stored : undefined);
      const problem = state && isWaiting(state) && this.#deps.endpointProblem(registration.name);
      const status = problem ? withEndpointProblem(known, problem, entry, registration.name) : known;
      const refused = registrations.problem(registration.name) !== undefined;
      const fallback = (): KeyStatus => idleStatus(mayRun(entry, registration, { refused, recorded: isRecorded }));
      const startProblem = loop?.startProblem && ({ state: 'Retrying', ...loop.startProblem } as const);
      const shown = withObservedInputs({ ...(status ?? fallback()), ...startProblem }, entry, registration.name);
      const explained = withSuspendedTeardown(withCause(shown, entry, registration), entry, record?.lastOutcome);
      // A stored message, possibly of an earlier leader, has the notice already.
      const isStored = stored !== undefined && known === stored && explained.message === stored.message;
      statuses.set(registration.name, isStored ? explained : withAbandonment(explained, entry, registration.name));
    }
    for (const { key } of loops()?.ofEntry(entry.ref.uid) ?? []) {
      if (registrations.get(key.component) || !runs.find(key) || statuses.size >= maxComponentStatuses) continue;
      statuses.set(key.component, notRegisteredStatus(entry, key.component));
    }
    for (const name of entry.deleting ? [] : entry.named) {
      if (registrations.get(name) || statuses.has(name) || statuses.size >= maxComponentStatuses) continue;
      // The schema of the status admits no other names.
      if (name.length === 0 || name.length > maxNameLength) continue;
      const message = 'no such component is registered; correct the name in spec.components, or register the component';
      statuses.set(name, plainStatus('NotApplicable', 'NotRegistered', message));
    }
    return statuses;
  }
}

/** Of a component whose key has reported none. */
function idleStatus(mayRun: Inputs['mayRun']): KeyStatus {
  if (mayRun.may !== 'no') return plainStatus('Progressing', 'Pending');
  return mayRun.why === 'Suspended'
    ? plainStatus('Suspended', 'Suspended', suspendedDetail(undefined).message)
    : plainStatus(stateWithoutRun[mayRun.why], mayRun.why);
}

/** Whether the key waits for its run, or has one, possibly a probe. */
const isWaiting = ({ phase, stored }: KeyState): boolean =>
  phase === 'queued' || phase === 'starting' || phase === 'running' || stored?.record.heldBy === 'Unreachable';

/**
 * The endpoint of a waiting run accepts no calls, possibly those for other entries. If a probe for
 * this entry fails, the text stays: an outage costs the entry one write.
 */
function withEndpointProblem(
  status: KeyStatus | undefined,
  { code, message: found }: EndpointProblem,
  entry: Entry,
  component: string,
): KeyStatus | undefined {
  if (!status) return undefined;
  const remedy = status.state === 'Deleting' ? `; ${abandonHint(component)}` : '';
  const message = `the endpoint accepts no calls: ${found}; see: kubectl get componentreconciler ${component} -o wide${remedy}`;
  const isKnown = statusFromEntry(entry, component)?.message === message;
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
function withCause(status: KeyStatus, { mode }: Entry, { modes, name }: Registration): KeyStatus {
  if (status.reason === 'Disabled')
    return { ...status, message: `spec.components.${name}.enabled is false; set it to true to run the component` };
  if (status.reason !== 'NotApplicable') return status;
  return { ...status, message: modes.includes(mode) ? selectorMismatch : `runs only in mode ${modes.join(', ')}` };
}

const selectorMismatch = 'its selector does not match the labels of the entry';

/** Says that the suspension keeps the teardown from starting. */
function withSuspendedTeardown(
  status: KeyStatus,
  { deleting, suspended }: Entry,
  last: LastOutcome | undefined,
): KeyStatus {
  const waits = status.state === 'Done' || status.reason === 'Suspended';
  if (!deleting || !suspended || !waits) return status;
  const found = 'the entry is being deleted, but spec.suspend is true: the server starts no teardown';
  const remedy = 'set it to false to tear the component down';
  const why = last && last.outcome !== 'Done' ? `; ${lastOutcomeText(last)}` : '';
  return { ...status, state: 'Suspended', reason: 'Suspended', message: `${found}; ${remedy}${why}` };
}

/** A call that was not accepted observed no inputs, so the entry's `observedInputs` stays. */
function withObservedInputs(status: KeyStatus, entry: Entry, component: string): KeyStatus {
  if (!wasNotAccepted(status.reason)) return status;
  return { ...status, observedInputs: statusFromEntry(entry, component)?.observedInputs };
}

/** Names who abandoned the component, or says why its abandon annotation has no effect. */
function withAbandonment(status: KeyStatus, entry: Entry, component: string): KeyStatus {
  if (status.reason === 'Abandoned') return { ...status, message: abandonmentText(entry, component) };
  if (!hasUnrecordedAbandonment(entry, component)) return status;
  const notice = `annotation ${abandonAnnotation(component)} has no effect, because the webhook recorded no user for it; set another reason`;
  return { ...status, message: status.message ? `${notice}; ${status.message}` : notice };
}

function notRegisteredStatus(entry: Entry, component: string): KeyStatus {
  const message = `component ${component} is not registered; register it again or, to leave what it created, abandon it: annotate the entry with ${abandonAnnotation(component)}=REASON`;
  return entry.deleting
    ? plainStatus('Deleting', 'NotRegistered', message)
    : plainStatus('NotApplicable', 'NotRegistered', message);
}

/** An earlier leader may have written it. */
function statusFromEntry(entry: Entry, component: string): KeyStatus | undefined {
  const found = entry.components.find(({ name }) => name === component);
  return (
    found && {
      state: found.state,
      reason: found.reason,
      message: found.message,
      missing: found.missing ?? [],
      observedInputs: found.observedInputs,
      livelock: undefined,
    }
  );
}

const sorted = (statuses: readonly ComponentStatus[]): ComponentStatus[] =>
  [...statuses].sort((a, b) => (a.name < b.name ? -1 : 1));
const hasCondition = (conditions: readonly Condition[], type: string): boolean =>
  conditions.some((condition) => condition.type === type);

/** The message of Ready, cut to the width of a column. */
function waitingForOf(conditions: readonly Condition[]): string | undefined {
  const message = conditions.find(({ type }) => type === entryConditions.ready)?.message;
  return message ? shorten(message, maxColumnText) : undefined;
}

export type KeyStatuses = ReadonlyMap<string, KeyStatus>;

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

/** `status.components`, sorted by name. `since` stays while the state does. */
export function componentStatuses(
  statuses: KeyStatuses,
  before: readonly ComponentStatus[],
  nowMs: number,
): ComponentStatus[] {
  return [...statuses].sort(byName).map(([name, { state, reason, message, missing, observedInputs }]) => {
    const previous = before.find((status) => status.name === name);
    return {
      name,
      state,
      ...(reason === undefined ? {} : { reason: reason.slice(0, 64) }),
      ...(message === undefined ? {} : { message: message.slice(0, 1024) }),
      ...(missing.length === 0 ? {} : { missing: [...missing] }),
      ...(observedInputs === undefined ? {} : { observedInputs }),
      since: previous?.state === state ? previous.since : formatTime(nowMs),
    };
  });
}

/** The worst state is the reason of Ready, unless the entry itself has one. */
const worstFirst: readonly ComponentState[] = [
  'Failed',
  'Retrying',
  'NotReady',
  'Progressing',
  'Suspended',
  'Deleting',
];

/**
 * Ready: every applicable component is Done with the current inputs, there is one, and the entry is
 * neither too large nor being deleted. The message lists the others.
 */
export function readyOf(
  statuses: KeyStatuses,
  entry: Pick<Entry, 'bytes' | 'deleting' | 'suspended'>,
): ConditionUpdate<Condition> {
  const notReady = (reason: string, message: string): ConditionUpdate<Condition> => ({
    type: entryConditions.ready,
    status: 'False',
    reason,
    message,
  });
  const applicable = [...statuses].filter(([, { state }]) => state !== 'NotApplicable').sort(byName);
  const unfinished = worstFirst.flatMap((state) => applicable.filter(([, status]) => status.state === state));
  const message = listed(unfinished.map(([name, status]) => `${name}: ${describeState(status)}`));
  if (entry.deleting) {
    if (applicable.length === 0) return notReady('Deleting', 'no component is left to tear down');
    const names = applicable.map(([name]) => name).join(', ');
    if (entry.suspended)
      return notReady(
        'Suspended',
        `the entry is being deleted, but spec.suspend is true: the server starts no teardown of ${names}; set spec.suspend to false`,
      );
    return notReady('Deleting', message || `still to tear down: ${names}`);
  }
  if (entry.bytes > maxEntryBytes) {
    return notReady(
      'TooLarge',
      `the entry has ${entry.bytes} bytes; at most ${maxEntryBytes} are allowed; move large values of its spec or its outputs to a Secret, and reference that`,
    );
  }
  if (applicable.length === 0) return notReady('NoComponents', noComponentsMessage(statuses));
  const notes = listed([
    ...(entry.suspended ? ['suspended by spec.suspend: set it to false to resume'] : []),
    ...(message === '' ? [] : [message]),
    ...[...statuses]
      .filter(isUnregistered)
      .map(([name]) => `${printable(name)}: not registered`)
      .sort(),
  ]);
  const worst = unfinished[0]?.[1];
  if (worst) return notReady(entry.suspended ? 'Suspended' : worst.state, notes);
  return { type: entryConditions.ready, status: 'True', reason: 'Done', message: notes };
}

/** In quotes if unusual: any text may be a key of spec.components. */
const printable = (name: string): string => (/^[\w.-]+$/.test(name) ? name : quote(name));

const isUnregistered = ([, { reason }]: readonly [string, KeyStatus]): boolean => reason === 'NotRegistered';

function noComponentsMessage(statuses: KeyStatuses): string {
  if (statuses.size === 0) return 'no component is registered; create a ComponentReconciler for each component';
  const causes = [...statuses].map(([name, status]) => ({ name, ...idleCause(name, status) }));
  causes.sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : 1));
  const texts = causes.map(({ name, text }) => `${printable(name)} (${text})`);
  return `no component runs: ${listed(texts, ', ')}`;
}

/** Lower ranks come first. The mode comes last, because it cannot change. */
function idleCause(
  name: string,
  { reason, message = '' }: KeyStatus,
): { readonly rank: number; readonly text: string } {
  if (reason === 'NotRegistered') return { rank: 0, text: 'not registered' };
  if (reason === 'Abandoned') return { rank: 1, text: 'abandoned' };
  if (reason === 'Disabled') return { rank: 3, text: `spec.components.${name}.enabled is false` };
  return { rank: message === selectorMismatch ? 2 : 4, text: message };
}

export function livelockOf(statuses: KeyStatuses): ConditionUpdate<Condition> {
  const messages = [...statuses].flatMap(([name, { livelock }]) =>
    livelock === undefined ? [] : [`${name}: ${livelock}`],
  );
  const type = entryConditions.livelock;
  if (messages.length === 0) return { type, status: 'False', reason: 'None', message: '' };
  return { type, status: 'True', reason: 'InputsReturn', message: listed(messages.sort()) };
}

/** Characters. The component statuses have all details. */
const maxSummaryLength = 4096;

/** As many texts as fit, at least the first; counts the others. */
function listed(texts: readonly string[], separator = '; '): string {
  let text = '';
  for (const [index, next] of texts.entries()) {
    const longer = index === 0 ? next : `${text}${separator}${next}`;
    const omitted = texts.length - index;
    if (index > 0 && longer.length > maxSummaryLength) return `${text}${separator}and ${omitted} more`;
    text = longer;
  }
  return text;
}

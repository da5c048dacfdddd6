import { isDeepStrictEqual } from 'node:util';
import { type ConditionUpdate, mergeConditions } from '../../api/conditions.ts';
import type { ComponentState, ComponentStatus } from '../../api/inventory/cluster-inventory.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import { entryConditions, maxEntryBytes } from '../../api/inventory/names.ts';
import type { Condition } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { type KeyStatus, plainStatus } from '../core/step.ts';
import type { Entry } from '../entry.ts';
import { keyText } from '../key.ts';
import type { RunStore } from '../ports.ts';
import { isApplicable } from './entry-snapshot.ts';
import type { KeyLoops } from './key-loop.ts';
import type { RegistrationLister } from './registrations.ts';

interface EntryStatusDeps {
  readonly registrations: RegistrationLister;
  readonly runs: RunStore;
  /** Undefined while this replica is not the leader. */
  readonly loops: () => KeyLoops | undefined;
  readonly clock: Clock;
  /** Why the remote watches of an entry are unhealthy; undefined if they are healthy, null if it has none. */
  readonly remoteProblem: (entryUid: string) => string | undefined | null;
}

/** Maximum number of component statuses in one entry. The status omits further components. */
const maxComponentStatuses = 64;

/** Computes the status of an entry. */
export class EntryStatus {
  readonly #deps: EntryStatusDeps;

  constructor(deps: EntryStatusDeps) {
    this.#deps = deps;
  }

  /** The status as a merge patch; undefined if the entry already has it. */
  patch(entry: Entry): { readonly status: Readonly<Record<string, unknown>> } | undefined {
    const nowMs = this.#deps.clock.now();
    const statuses = this.#statuses(entry);
    const components = componentStatuses(statuses, entry.components, nowMs);
    const conditions = mergeConditions(entry.conditions, this.#conditions(entry, statuses), nowMs);
    const sameComponents = isDeepStrictEqual(components, sorted(entry.components));
    const sameConditions = conditions === entry.conditions;
    if (sameComponents && sameConditions) return undefined;
    return { status: { ...(sameComponents ? {} : { components }), ...(sameConditions ? {} : { conditions }) } };
  }

  #conditions(entry: Entry, statuses: ReadonlyMap<string, KeyStatus>): ConditionUpdate<Condition>[] {
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

  #statuses(entry: Entry): ReadonlyMap<string, KeyStatus> {
    const { registrations, runs, loops } = this.#deps;
    const statuses = new Map<string, KeyStatus>();
    for (const registration of registrations.all()) {
      if (statuses.size >= maxComponentStatuses) return statuses;
      const key = { entryUid: entry.ref.uid, component: registration.name };
      const state = loops()?.get(keyText(key))?.state;
      const isRecorded = runs.find(key) !== undefined;
      // If a retired key still has a record, its removal failed.
      if ((state?.phase === 'gone' || entry.deleting) && !isRecorded) continue;
      const status = state?.status ?? (isRecorded ? statusFromEntry(entry, registration.name) : undefined);
      const fallback = isApplicable(entry, registration)
        ? plainStatus('Progressing', 'Pending')
        : plainStatus('NotApplicable', 'NotApplicable');
      statuses.set(registration.name, status ?? fallback);
    }
    for (const { key } of loops()?.ofEntry(entry.ref.uid) ?? []) {
      if (registrations.get(key.component) || !runs.find(key) || statuses.size >= maxComponentStatuses) continue;
      statuses.set(key.component, unregistered(entry, key.component));
    }
    return statuses;
  }
}

function unregistered(entry: Entry, component: string): KeyStatus {
  const message = `component ${component} is not registered; register it again, or, while the entry is being deleted, annotate the entry with abandon.inventory.drawbridge.dev/${component}=REASON`;
  return entry.deleting
    ? plainStatus('Deleting', 'NotRegistered', message)
    : plainStatus('NotApplicable', 'NotRegistered', message);
}

/** The status that an earlier leader wrote; undefined if there is none. */
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

/** Statuses by component. */
export type KeyStatuses = ReadonlyMap<string, KeyStatus>;

/** A condition without the time and generation, which the writer adds. */
interface ConditionValue {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** `status.components`, sorted by name. `since` is kept while the state stays the same. Truncates reasons and messages. */
export function componentStatuses(
  statuses: KeyStatuses,
  before: readonly ComponentStatus[],
  nowMs: number,
): ComponentStatus[] {
  return [...statuses]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { state, reason, message, missing, observedInputs }]) => {
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

/** States that keep Ready false, worst first. The worst state is the reason of Ready, or `Suspended` if that is its reason. */
const worstFirst: readonly ComponentState[] = ['Failed', 'Retrying', 'NotReady', 'Progressing', 'Deleting'];

/**
 * The condition Ready: whether every applicable component is Done with the current inputs. Its message lists the components that are not.
 * Also False if the entry is being deleted or too large, or no component applies.
 */
export function readyOf(
  statuses: KeyStatuses,
  entry: { readonly bytes: number; readonly deleting: boolean },
): ConditionValue {
  const notReady = (reason: string, message: string): ConditionValue => ({
    type: entryConditions.ready,
    status: 'False',
    reason,
    message,
  });
  const applicable = [...statuses]
    .filter(([, { state }]) => state !== 'NotApplicable')
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const unfinished = worstFirst.flatMap((state) => applicable.filter(([, status]) => status.state === state));
  const message = listed(unfinished.map(([name, status]) => `${name}: ${describe(status)}`));
  if (entry.deleting) return notReady('Deleting', message || 'no component is left to tear down');
  if (entry.bytes > maxEntryBytes) {
    return notReady(
      'TooLarge',
      `the entry has ${entry.bytes} bytes; at most ${maxEntryBytes} are allowed; move large values to a Secret and reference it here`,
    );
  }
  if (applicable.length === 0)
    return notReady(
      'NoComponents',
      'no registered component applies to this entry; check the selector and modes of the ComponentReconcilers',
    );
  const worst = unfinished[0]?.[1];
  if (worst) return notReady(worst.reason === 'Suspended' ? 'Suspended' : worst.state, message);
  return { type: entryConditions.ready, status: 'True', reason: 'Done', message: '' };
}

/** The condition Livelock. Its message lists the components in a livelock. */
export function livelockOf(statuses: KeyStatuses): ConditionValue {
  const messages = [...statuses].flatMap(([name, { livelock }]) =>
    livelock === undefined ? [] : [`${name}: ${livelock}`],
  );
  const type = entryConditions.livelock;
  if (messages.length === 0) return { type, status: 'False', reason: 'None', message: '' };
  return { type, status: 'True', reason: 'InputsReturn', message: listed(messages.sort()) };
}

/** Maximum length of a summary in a condition message, in characters. The component statuses contain all details. */
const maxSummaryLength = 4096;

/** Joins as many texts as fit, at least the first. */
function listed(texts: readonly string[]): string {
  let text = '';
  for (const [index, next] of texts.entries()) {
    const longer = index === 0 ? next : `${text}; ${next}`;
    const left = texts.length - index;
    if (index > 0 && longer.length > maxSummaryLength) return `${text}; and ${left} more`;
    text = longer;
  }
  return text;
}

function describe({ state, reason, message, missing }: KeyStatus): string {
  const detail = message ? `: ${message}` : '';
  if (missing.length > 0) return `waits for ${missing.map(inputText).join(', ')}${detail}`;
  return `${state}${reason && reason !== state ? ` (${reason})` : ''}${detail}`;
}

function inputText({ path, want, value }: MissingInput): string {
  switch (want) {
    case 'present':
      return path;
    case 'absent':
      return `${path} to be absent`;
    case 'equals':
      return `${path} to be ${JSON.stringify(value)?.slice(0, 64)}`;
    case 'noReaders':
      return `${path} to have no readers`;
  }
}

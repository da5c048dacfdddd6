import { isDeepStrictEqual } from 'node:util';
import { type ConditionUpdate, mergeConditions } from '../../api/conditions.ts';
import type { ComponentState, ComponentStatus } from '../../api/inventory/cluster-inventory.ts';
import { describeState } from '../../api/inventory/describe-state.ts';
import { maxColumnText } from '../../api/inventory/fields.ts';
import { entryConditions, maxEntryBytes } from '../../api/inventory/names.ts';
import type { Condition } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { shorten } from '../../kit/shorten.ts';
import type { EndpointProblem } from '../core/memory.ts';
import { type KeyStatus, notRegisteredStatus, plainStatus, selectorMismatch, statusOf } from '../core/status.ts';
import type { Entry } from '../entry.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { RunStore } from '../ports.ts';
import type { FactsReader } from './facts-reader.ts';
import { KeyMemory, type Memories } from './memories.ts';
import type { RegistrationLister } from './registrations.ts';
import { internalError } from './run-reporter.ts';

interface EntryStatusDeps {
  readonly registrations: RegistrationLister;
  readonly runs: RunStore;
  /** Undefined until this replica leads. */
  readonly memories: () => Memories | undefined;
  readonly facts: Pick<FactsReader, 'refresh'>;
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
    if (livelock.status === 'True' || entry.conditions.some(({ type }) => type === livelock.type))
      conditions.push(livelock);
    const problem = this.#deps.remoteProblem(entry.ref.uid);
    const type = entryConditions.remoteWatchHealthy;
    if (problem === undefined) conditions.push({ type, status: 'True', reason: 'Watching', message: '' });
    else if (problem !== null) conditions.push({ type, status: 'False', reason: 'NotWatching', message: problem });
    return conditions;
  }

  #statuses(entry: Entry): KeyStatuses {
    const { registrations, runs, memories } = this.#deps;
    const statuses = new Map<string, KeyStatus>();
    for (const { name } of registrations.all()) {
      if (statuses.size >= maxComponentStatuses) return statuses;
      const key = { entryUid: entry.ref.uid, component: name };
      // Without a record, nothing is left to tear down. If its removal fails, the record stays.
      if (!entry.deleting || runs.find(key)) statuses.set(name, this.#status(entry, key));
    }
    for (const { key } of memories()?.ofEntry(entry.ref.uid) ?? []) {
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

  #status(entry: Entry, key: ComponentKey): KeyStatus {
    const { memories, facts, endpointProblem } = this.#deps;
    const memory = memories()?.get(keyText(key)) ?? new KeyMemory(key);
    // Its inputs may be what cannot be read.
    if (memory.problem?.reason === internalError) return { ...plainStatus('Failed', internalError), ...memory.problem };
    const known = facts.refresh(memory, entry);
    return known ? statusOf(known, endpointProblem(key.component)) : plainStatus('Progressing', 'Pending');
  }
}

const sorted = (statuses: readonly ComponentStatus[]): ComponentStatus[] =>
  [...statuses].sort((a, b) => (a.name < b.name ? -1 : 1));

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

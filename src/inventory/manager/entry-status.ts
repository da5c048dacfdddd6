import { isDeepStrictEqual } from 'node:util';
import { type FindingOf, mergeConditions } from '../../api/conditions.ts';
import type { ComponentState, ComponentStatus } from '../../api/inventory/cluster-inventory.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import { entryConditions, maxEntryBytes } from '../../api/inventory/names.ts';
import type { Condition } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { type KeyStatus, plainStatus } from '../core/step.ts';
import type { Entry } from '../entry.ts';
import { keyText } from '../key.ts';
import type { RunStore } from '../ports.ts';
import { isFor } from './entry-snapshot.ts';
import type { KeyLoops } from './key-loop.ts';
import type { Registry } from './registrations.ts';

interface EntryStatusDeps {
  readonly registry: Registry;
  readonly runs: RunStore;
  readonly loops: () => KeyLoops | undefined;
  readonly clock: Clock;
  /** Why the remote watches of an entry are not to be relied on; null when it has none. */
  readonly remoteProblem: (entryUid: string) => string | undefined | null;
}

/** Most statuses of one entry. */
const maxComponentStatuses = 64;

/** What is to stand in the status of an entry. */
export class EntryStatus {
  readonly #deps: EntryStatusDeps;

  constructor(deps: EntryStatusDeps) {
    this.#deps = deps;
  }

  /** As a merge patch; undefined when it stands there already. */
  patch(entry: Entry): { readonly status: Readonly<Record<string, unknown>> } | undefined {
    const nowMs = this.#deps.clock.now();
    const statuses = this.#statuses(entry);
    const components = componentStatuses(statuses, entry.components, nowMs);
    const conditions = mergeConditions(entry.conditions, this.#conditions(entry, statuses), nowMs);
    const sameRows = isDeepStrictEqual(components, sorted(entry.components));
    const sameConditions = conditions === entry.conditions;
    if (sameRows && sameConditions) return undefined;
    return { status: { ...(sameRows ? {} : { components }), ...(sameConditions ? {} : { conditions }) } };
  }

  #conditions(entry: Entry, statuses: ReadonlyMap<string, KeyStatus>): FindingOf<Condition>[] {
    const findings: FindingOf<Condition>[] = [readyOf(statuses, entry)];
    const livelock = livelockOf(statuses);
    if (livelock.status === 'True' || has(entry.conditions, entryConditions.livelock)) findings.push(livelock);
    const problem = this.#deps.remoteProblem(entry.ref.uid);
    const type = entryConditions.remoteWatchHealthy;
    if (problem === undefined) findings.push({ type, status: 'True', reason: 'Watching', message: '' });
    else if (problem !== null) findings.push({ type, status: 'False', reason: 'NotWatching', message: problem });
    return findings;
  }

  #statuses(entry: Entry): ReadonlyMap<string, KeyStatus> {
    const { registry, runs, loops } = this.#deps;
    const statuses = new Map<string, KeyStatus>();
    for (const registration of registry.all()) {
      if (statuses.size >= maxComponentStatuses) return statuses;
      const key = { entryUid: entry.ref.uid, component: registration.name };
      const state = loops()?.get(keyText(key))?.state;
      const isRecorded = runs.find(key) !== undefined;
      // What is gone and still has a record could not be taken out.
      if ((state?.phase === 'gone' || entry.deleting) && !isRecorded) continue;
      const told = state?.status ?? (isRecorded ? statusFromEntry(entry, registration.name) : undefined);
      const fallback = isFor(entry, registration)
        ? plainStatus('Progressing', 'Pending')
        : plainStatus('NotApplicable', 'NotApplicable');
      statuses.set(registration.name, told ?? fallback);
    }
    for (const { key } of loops()?.ofEntry(entry.ref.uid) ?? []) {
      if (registry.get(key.component) || !runs.find(key) || statuses.size >= maxComponentStatuses) continue;
      statuses.set(key.component, unregistered(entry, key.component));
    }
    return statuses;
  }
}

function unregistered(entry: Entry, component: string): KeyStatus {
  const message = `component ${component} is not registered any more: register it again, or let go of it with the annotation abandon.inventory.drawbridge.dev/${component}`;
  return entry.deleting
    ? plainStatus('Deleting', 'NotRegistered', message)
    : plainStatus('NotApplicable', 'NotRegistered', message);
}

/** What was told before this process led. */
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
const has = (conditions: readonly Condition[], type: string): boolean =>
  conditions.some((condition) => condition.type === type);

export type KeyStatuses = ReadonlyMap<string, KeyStatus>;

/** A condition, but for the time and generation that whoever writes it adds. */
interface ConditionValue {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** `status.components`: by name, with `since` kept for as long as the state stays the same. */
export function componentStatuses(
  statuses: KeyStatuses,
  before: readonly ComponentStatus[],
  nowMs: number,
): ComponentStatus[] {
  return [...statuses]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { state, reason, message, missing, observedInputs }]) => {
      const old = before.find((status) => status.name === name);
      return {
        name,
        state,
        ...(reason === undefined ? {} : { reason: reason.slice(0, 64) }),
        ...(message === undefined ? {} : { message: message.slice(0, 1024) }),
        ...(missing.length === 0 ? {} : { missing: [...missing] }),
        ...(observedInputs === undefined ? {} : { observedInputs }),
        since: old?.state === state ? old.since : formatTime(nowMs),
      };
    });
}

/** What is the matter, the worst first: the reason of Ready. */
const worstFirst: readonly ComponentState[] = ['Failed', 'Retrying', 'NotReady', 'Progressing', 'Deleting'];

/** Whether every component that applies is Done with the inputs of now, and what is missing if not. */
export function readyOf(
  statuses: KeyStatuses,
  entry: { readonly bytes: number; readonly deleting: boolean },
): ConditionValue {
  const no = (reason: string, message: string): ConditionValue => ({
    type: entryConditions.ready,
    status: 'False',
    reason,
    message,
  });
  const counted = [...statuses]
    .filter(([, { state }]) => state !== 'NotApplicable')
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const open = worstFirst.flatMap((state) => counted.filter(([, status]) => status.state === state));
  const message = listed(open.map(([name, status]) => `${name}: ${describe(status)}`));
  if (entry.deleting) return no('Deleting', message || 'nothing is left');
  if (entry.bytes > maxEntryBytes) {
    return no(
      'TooLarge',
      `${entry.bytes} bytes; at most ${maxEntryBytes} are run. Keep big things in Secrets and name them here`,
    );
  }
  if (counted.length === 0) return no('NoComponents', 'no registered component is for this entry');
  const worst = open[0]?.[1];
  if (worst) return no(worst.reason === 'Suspended' ? 'Suspended' : worst.state, message);
  return { type: entryConditions.ready, status: 'True', reason: 'Done', message: '' };
}

/** Which components' inputs go round in circles. */
export function livelockOf(statuses: KeyStatuses): ConditionValue {
  const circles = [...statuses].flatMap(([name, { livelock }]) =>
    livelock === undefined ? [] : [`${name}: ${livelock}`],
  );
  const type = entryConditions.livelock;
  if (circles.length === 0) return { type, status: 'False', reason: 'None', message: '' };
  return { type, status: 'True', reason: 'InputsReturn', message: listed(circles.sort()) };
}

/** Characters of a message of a condition: the statuses say all of it. */
const maxConditionMessage = 4096;

/** As many as there is room for, the first of them in any case. */
function listed(texts: readonly string[]): string {
  let text = '';
  for (const [index, one] of texts.entries()) {
    const longer = index === 0 ? one : `${text}; ${one}`;
    const left = texts.length - index;
    if (index > 0 && longer.length > maxConditionMessage) return `${text}; and ${left} more`;
    text = longer;
  }
  return text;
}

function describe({ state, reason, message, missing }: KeyStatus): string {
  const said = message ? `: ${message}` : '';
  if (missing.length > 0) return `waits for ${missing.map(wanted).join(', ')}${said}`;
  return `${state}${reason && reason !== state ? ` (${reason})` : ''}${said}`;
}

function wanted({ path, want, value }: MissingInput): string {
  switch (want) {
    case 'present':
      return path;
    case 'absent':
      return `${path} to go`;
    case 'equals':
      return `${path} to be ${JSON.stringify(value)?.slice(0, 64)}`;
    case 'noReaders':
      return `no reader of ${path} to be left`;
  }
}

import { isDeepStrictEqual } from 'node:util';
import { type FindingOf, mergeConditions } from '../../api/conditions.ts';
import type { ComponentStatus } from '../../api/inventory/cluster-inventory.ts';
import { entryConditions } from '../../api/inventory/names.ts';
import type { Condition } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import { componentRows, livelockOf, readyOf } from '../core/entry-status.ts';
import type { Row } from '../core/step.ts';
import type { Entry } from '../entry.ts';
import { keyText } from '../key.ts';
import type { RunStore } from '../ports.ts';
import { isFor } from './applicability.ts';
import type { Loops } from './loops.ts';
import type { Registry } from './registry.ts';

export interface EntryStatusDeps {
  readonly registry: Registry;
  readonly runs: RunStore;
  readonly loops: () => Loops | undefined;
  readonly clock: Clock;
  /** Why the remote watches of an entry are not to be relied on; null when it has none. */
  readonly remoteProblem: (entryUid: string) => string | undefined | null;
}

/** Most rows of one entry. */
const mostRows = 64;

const row = (state: Row['state'], reason: string, message?: string): Row => ({
  state,
  reason,
  message,
  missing: [],
  observedInputs: undefined,
  livelock: undefined,
});

/** What is to stand in the status of an entry. */
export class EntryStatus {
  readonly #deps: EntryStatusDeps;

  constructor(deps: EntryStatusDeps) {
    this.#deps = deps;
  }

  /** As a merge patch; undefined when it stands there already. */
  patch(entry: Entry): { readonly status: Readonly<Record<string, unknown>> } | undefined {
    const nowMs = this.#deps.clock.now();
    const rows = this.#rows(entry);
    const components = componentRows(rows, entry.components, nowMs);
    const conditions = mergeConditions(entry.conditions, this.#findings(entry, rows), nowMs);
    const sameRows = isDeepStrictEqual(components, sorted(entry.components));
    const sameConditions = conditions === entry.conditions;
    if (sameRows && sameConditions) return undefined;
    return { status: { ...(sameRows ? {} : { components }), ...(sameConditions ? {} : { conditions }) } };
  }

  #findings(entry: Entry, rows: ReadonlyMap<string, Row>): FindingOf<Condition>[] {
    const findings: FindingOf<Condition>[] = [readyOf(rows, entry)];
    const livelock = livelockOf(rows);
    if (livelock.status === 'True' || has(entry.conditions, entryConditions.livelock)) findings.push(livelock);
    const problem = this.#deps.remoteProblem(entry.ref.uid);
    const type = entryConditions.remoteWatchHealthy;
    if (problem === undefined) findings.push({ type, status: 'True', reason: 'Watching', message: '' });
    else if (problem !== null) findings.push({ type, status: 'False', reason: 'NotWatching', message: problem });
    return findings;
  }

  #rows(entry: Entry): ReadonlyMap<string, Row> {
    const { registry, runs, loops } = this.#deps;
    const rows = new Map<string, Row>();
    for (const registration of registry.all()) {
      if (rows.size >= mostRows) return rows;
      const key = { entryUid: entry.ref.uid, component: registration.name };
      const state = loops()?.get(keyText(key))?.state;
      const isRecorded = runs.find(key) !== undefined;
      // What is gone and still has a record could not be taken out.
      if ((state?.phase === 'gone' || entry.deleting) && !isRecorded) continue;
      const told = state?.row ?? (isRecorded ? rowFrom(entry, registration.name) : undefined);
      const fallback = isFor(entry, registration)
        ? row('Progressing', 'Pending')
        : row('NotApplicable', 'NotApplicable');
      rows.set(registration.name, told ?? fallback);
    }
    for (const { key } of loops()?.ofEntry(entry.ref.uid) ?? []) {
      if (registry.get(key.component) || !runs.find(key) || rows.size >= mostRows) continue;
      rows.set(key.component, unregistered(entry, key.component));
    }
    return rows;
  }
}

function unregistered(entry: Entry, component: string): Row {
  const message = `component ${component} is not registered any more: register it again, or let go of it with the annotation abandon.inventory.drawbridge.dev/${component}`;
  return entry.deleting ? row('Deleting', 'NotRegistered', message) : row('NotApplicable', 'NotRegistered', message);
}

/** What was told before this process led. */
function rowFrom(entry: Entry, component: string): Row | undefined {
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

const sorted = (rows: readonly ComponentStatus[]): ComponentStatus[] =>
  [...rows].sort((a, b) => (a.name < b.name ? -1 : 1));
const has = (conditions: readonly Condition[], type: string): boolean =>
  conditions.some((condition) => condition.type === type);

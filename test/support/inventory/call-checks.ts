import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { type ComponentKey, keyText } from '../../../src/inventory/key.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import type { RecordChecks } from './record-checks.ts';
import type { CheckedWorld, SimManager } from './simulation.ts';
import { assertInvariant } from './violation.ts';

const mostOfEntry = 6;
/** Minimum time between two starts of a key, milliseconds. */
const spacingMs = 200;

interface OwnRun extends ComponentKey {
  readonly seq: number;
}

/** Checks the invariants of each call to a component. */
export class CallChecks {
  readonly #world: CheckedWorld;
  readonly #records: RecordChecks;
  /** Order of the calls, by `key#seq`. */
  readonly #called = new Map<string, number>();
  /** By manager: the last run of each key and the time of its call. */
  readonly #own = new Map<SimManager, Map<string, OwnRun & { readonly at: number }>>();

  constructor(world: CheckedWorld, records: RecordChecks) {
    this.#world = world;
    this.#records = records;
  }

  /** Position of the call of a run in the order of `world.next()`. */
  orderOf(run: string): number {
    return this.#called.get(run) ?? 0;
  }

  called(by: SimManager, request: ReconcileRequest, registration: Registration): void {
    const { inventory, time } = this.#world;
    const { seq } = request.run;
    const key = { entryUid: request.entry.id, component: request.component };
    const text = keyText(key);
    const run = `${text}#${seq}`;
    const record = inventory.record(key)?.record;
    const about = (): string => `${run} ${JSON.stringify([request, record])}`;
    assertInvariant(!this.#called.has(run), 'I9: one call for each seq', about);
    this.#called.set(run, this.#world.next());
    assertInvariant(this.#records.isStarted(run), 'I15: no run without a stored start record', about);
    const credential = request.auth.token.replace('token ', '');
    const isOn = record?.seq === seq && record.phase === 'Running' && record.credentialId !== undefined;
    assertInvariant(!isOn || record.credentialId === credential, 'I9: its token is of that run', about);
    const seen = by.seen(key.entryUid);
    const isDelete = request.operation === 'delete';
    assertInvariant(isDelete || seen?.deleting !== true, 'I18: reconcile never starts after deletionTimestamp', about);
    assertInvariant(!seen?.suspended, 'I18: no call while suspended', about);
    assertInvariant(isDelete || !seen?.disabled.has(key.component), 'I18: no call of a disabled component', about);
    const own = this.#own.get(by) ?? new Map();
    this.#own.set(by, own);
    const before = own.get(text);
    assertInvariant(!before || time.now - before.at >= spacingMs - 1e-6, 'I21: starts are 200 ms apart', about);
    own.set(text, { ...key, seq, at: time.now });
    this.#records.called(run, by);
    this.#checkSlots(own.values(), key, registration.maxConcurrent, about);
  }

  #checkSlots(own: Iterable<OwnRun>, { entryUid, component }: ComponentKey, most: number, about: () => string): void {
    let [ofComponent, ofEntry] = [0, 0];
    for (const run of own) {
      const record = this.#world.inventory.record(run)?.record;
      if (record?.seq !== run.seq || record.phase === 'Idle') continue;
      if (run.component === component) ofComponent += 1;
      if (run.entryUid === entryUid) ofEntry += 1;
    }
    assertInvariant(ofComponent <= most, 'I13: a component has at most maxConcurrent runs', about);
    assertInvariant(ofEntry <= mostOfEntry, 'I13: an entry has at most six runs', about);
  }
}

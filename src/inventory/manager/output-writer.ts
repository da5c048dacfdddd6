import { describe } from '../../kit/errors.ts';
import { type JsonPointer, overlap, pointerOf, pointerSegments } from '../../kit/json-pointer.ts';
import { isRecord, sameJson } from '../../kit/json-value.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import { mergePatched } from '../../kit/merge-patch.ts';
import { ApiError, isConflict, isRefused } from '../../kube/errors.ts';
import type { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { OutputsProblem, Problem } from '../core/memory.ts';
import type { StoredRecord } from '../core/run-record.ts';
import type { Entry, EntryRef } from '../entry.ts';
import { outputsViolation } from '../policy/component-write.ts';
import type { EntryAccess, InventoryStore, RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { RegistrationLister } from './registrations.ts';

interface OutputWriterDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly access: Pick<EntryAccess, 'deleteAccount'>;
  readonly registrations: RegistrationLister;
  readonly latestEntries: WriteThroughCache<Entry>;
}

/** Of the webhook that limits an entry. */
const tooLarge = 'EntryTooLarge';

/** Writes outputs into entries, one write at a time for each entry. */
export class OutputWriter {
  readonly #deps: OutputWriterDeps;
  readonly #mutex = new KeyMutex();

  constructor(deps: OutputWriterDeps) {
    this.#deps = deps;
  }

  /** Whether the entry lacks the outputs. */
  isChange(entry: Entry, changed: Readonly<Record<string, unknown>>): boolean {
    const { outputs } = (this.#deps.latestEntries.get(entry.ref.uid) ?? entry).content.status;
    return !sameJson(mergePatched(outputs, changed), outputs);
  }

  /** Resolves to the rule that the outputs break, if any. A deleted entry needs none. */
  apply(
    ref: EntryRef,
    registration: Registration,
    outputs: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<OutputsProblem | undefined> {
    return this.#mutex.run(ref.uid, async () => {
      const before = this.#deps.latestEntries.get(ref.uid)?.content.status.outputs ?? {};
      const writer = { component: registration.name, entryUid: ref.uid, writes: registration.writes };
      const violation = outputsViolation(writer, before, outputs);
      if (violation) return violation;
      try {
        await this.#patchStatus(ref, { outputs }, signal);
        return undefined;
      } catch (error) {
        // The component must publish less.
        const [cause] = error instanceof ApiError ? error.causes : [];
        if (cause?.reason !== tooLarge) throw error;
        return { code: tooLarge, message: cause.message.slice(`${tooLarge}: `.length) };
      }
    });
  }

  /**
   * Removes the outputs (during a deletion, also orphaned ones), then the record. Access of an
   * abandoned component goes first: its token may be valid.
   */
  async retire(
    ref: EntryRef,
    registration: Registration,
    base: StoredRecord,
    { abandoned }: { readonly abandoned: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { access } = this.#deps;
    if (abandoned)
      await named('withdrawing the access of a component', access.deleteAccount(ref, registration.name, signal));
    const removed = this.#mutex.run(ref.uid, () => this.#removeOutputs(ref, registration, signal));
    await named('removing outputs', removed);
    await named('removing a record', this.#remove(base, signal));
  }

  /** Reads live: the watch may not have reported all outputs yet. */
  async #removeOutputs(ref: EntryRef, { name, writes }: Registration, signal: AbortSignal): Promise<void> {
    const entry = await this.#deps.entries.get(ref, signal);
    if (!entry) return;
    const orphans = entry.deleting ? this.#orphans(entry, name) : [];
    const patch = removalPatch([...writes, ...orphans], entry.content.status.outputs);
    if (patch) await this.#patchStatus(ref, { outputs: patch }, signal);
  }

  /**
   * Outputs that no other component with a record owns, for example after its registration changed.
   * None if the entry names another component that is not registered.
   */
  #orphans({ ref, components, content }: Entry, retiring: string): JsonPointer[] {
    const { registrations, runs } = this.#deps;
    // The paths of an unregistered component are unknown.
    if (components.some(({ name }) => name !== retiring && !registrations.get(name))) return [];
    const owned = [...registrations.all()]
      .filter(({ name }) => name !== retiring && runs.find({ entryUid: ref.uid, component: name }))
      .flatMap(({ writes }) => writes);
    return Object.keys(content.status.outputs)
      .map((owner) => pointerOf('status', 'outputs', owner))
      .filter((path) => !owned.some((other) => overlap(path, other)));
  }

  /** After a conflict, removes the version that another writer stored. */
  async #remove(stored: StoredRecord, signal: AbortSignal): Promise<void> {
    const { runs } = this.#deps;
    const key = { entryUid: stored.record.entry.uid, component: stored.record.component };
    try {
      await runs.remove(stored, signal);
    } catch (error) {
      if (!isConflict(error)) throw error;
      const latest = await runs.load(key, signal);
      if (latest) await runs.remove(latest, signal);
    }
  }

  /** Patches the newest known version; without one, or after a conflict, the live one. */
  async #patchStatus(ref: EntryRef, status: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void> {
    const { entries, latestEntries } = this.#deps;
    const patch = ({ resourceVersion }: Entry): Promise<Entry> =>
      latestEntries.call(ref.uid, () => entries.patch(ref, 'status', { status }, { resourceVersion, signal }));
    const known = latestEntries.get(ref.uid);
    try {
      if (known) {
        await patch(known);
        return;
      }
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
    const live = await latestEntries.call(ref.uid, () => entries.get(ref, signal));
    if (live) await patch(live);
  }
}

/** The API server refused a write, which the status shows. */
export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

async function named(what: string, removal: Promise<void>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!isRefused(error)) throw error;
    const message = `the API server rejected ${what}: ${describe(error)}`;
    throw new Refused({ state: 'Deleting', reason: 'NotWritten', message });
  }
}

function removalPatch(pointers: readonly JsonPointer[], outputs: unknown): Record<string, unknown> | undefined {
  let patch: Record<string, unknown> | undefined;
  for (const pointer of pointers) {
    const path = (pointerSegments(pointer) ?? []).slice(2);
    if (path.length > 0 && hasPath(outputs, path)) patch = withNull(patch ?? {}, path);
  }
  return patch;
}

function hasPath(value: unknown, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return true;
  return isRecord(value) && Object.hasOwn(value, first) && hasPath(value[first], rest);
}

/** Null removes the value there. */
function withNull(patch: Record<string, unknown>, [first = '', ...rest]: readonly string[]): Record<string, unknown> {
  const below = Object.hasOwn(patch, first) ? patch[first] : {};
  if (below === null) return patch;
  const value = rest.length === 0 ? null : withNull(isRecord(below) ? below : {}, rest);
  return Object.fromEntries([...Object.entries(patch), [first, value]]);
}

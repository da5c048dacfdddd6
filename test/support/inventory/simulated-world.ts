import { isDeepStrictEqual } from 'node:util';
import type { OutcomeName } from '../../../src/api/inventory/reconcile-run.ts';
import type { RunRecord, StoredRecord } from '../../../src/inventory/core/run-record.ts';
import type { EntryContent, EntryRef } from '../../../src/inventory/entry.ts';
import type { Swap } from '../../../src/inventory/ports/run-store.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { Timeline } from './timeline.ts';

/** One version of an entry. */
export interface SimEntry {
  readonly ref: EntryRef;
  readonly version: number;
  readonly deleting: boolean;
  readonly suspended: boolean;
  readonly force: Readonly<Record<string, string>>;
  readonly spec: { readonly cluster: Readonly<Record<string, number>> };
  readonly outputs: Readonly<Record<string, { readonly value: number }>>;
  readonly content: EntryContent;
  /** By component; filled as they are asked for. */
  readonly digests: Map<string, string>;
}

/** What a component reads, for what it makes of it. */
export interface SimComponent {
  readonly registration: Registration;
  /** Outputs of others without which it is not ready. */
  readonly needs: readonly string[];
  /** Outputs of others that it uses where they are. */
  readonly likes: readonly string[];
  readonly specFields: readonly string[];
  readonly value: (inputs: readonly number[]) => number;
  /** It patches the entry itself, or returns outputs. */
  readonly patches: boolean;
  readonly durationMs: number;
  /** It never answers 202. */
  readonly isSynchronous?: boolean;
  /** It answers 503. */
  isDown?: boolean;
}

export class Violation extends Error {}

export function hold(isSo: boolean, invariant: string, detail: () => string): asserts isSo {
  if (!isSo) throw new Violation(`${invariant}: ${detail()}`);
}

/** What motherships and components share: the API server with its fence, and the log of what happened. Checks each write as it is made. */
export class SimulatedWorld {
  readonly time = new Timeline();
  readonly random: () => number;
  readonly components: ReadonlyMap<string, SimComponent>;
  readonly entries = new Map<string, SimEntry>();
  readonly records = new Map<string, StoredRecord>();
  readonly watchers = new Set<(uid: string, entry: SimEntry | undefined) => void>();
  readonly recordWatchers = new Set<(key: string, stored: StoredRecord | undefined) => void>();
  /** While true, whatever can go wrong may. */
  faulty = false;
  /** Events of watches may be lost. */
  isLossy = false;
  /** Components may fail for good, which they do for an hour. */
  isSevere = false;
  /** Which credential is of which run: `key#seq`. */
  readonly credentials = new Map<string, string>();
  /** `key#seq` of calls that were made. */
  readonly dispatched = new Set<string>();
  /** What components said, `key#seq` to outcomes. */
  readonly said = new Map<string, OutcomeName[]>();
  /** Calls by component. */
  readonly calls = new Map<string, number>();
  /** When each call was made, in order. */
  readonly log: { readonly at: number; readonly key: string; readonly reasons: readonly string[] }[] = [];
  rejected = 0;
  #version = 0;
  #credentials = 0;

  constructor(random: () => number, components: readonly SimComponent[]) {
    this.random = random;
    this.components = new Map(components.map((component) => [component.registration.name, component]));
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  /** A fault, while there may be any. */
  fault(probability: number): boolean {
    return this.faulty && this.random() < probability;
  }

  between(least: number, most: number): number {
    return Math.floor(least + this.random() * (most - least + 1));
  }

  create(name: string, uid: string, cluster: Readonly<Record<string, number>>): void {
    const spec = { cluster };
    this.#put({
      ref: { namespace: 'inv', name, uid },
      version: 0,
      deleting: false,
      suspended: false,
      force: {},
      spec,
      outputs: {},
      content: { spec, status: { outputs: {} } },
      digests: new Map(),
    });
  }

  edit(uid: string, change: Partial<Pick<SimEntry, 'deleting' | 'suspended' | 'force' | 'spec' | 'outputs'>>): void {
    const before = this.entries.get(uid);
    if (!before) return;
    const next = { ...before, ...change };
    this.#put({ ...next, content: { spec: next.spec, status: { outputs: next.outputs } }, digests: new Map() });
  }

  removeEntry(uid: string): void {
    this.entries.delete(uid);
    for (const watch of this.watchers) watch(uid, undefined);
    for (const [key, { record }] of this.records) if (record.entry.uid === uid) this.#putRecord(key, undefined);
  }

  issue(key: string, seq: number): string {
    this.#credentials += 1;
    const id = `JTI=${this.#credentials}`;
    this.credentials.set(id, `${key}#${seq}`);
    return id;
  }

  swap(key: string, next: RunRecord, base: StoredRecord | undefined): Swap {
    const there = this.records.get(key);
    if (there?.resourceVersion !== base?.resourceVersion) return { kind: 'conflict', stored: there };
    this.#check(key, next, there?.record);
    const stored = this.#putRecord(key, next);
    // Without its owner it is collected.
    if (!this.entries.has(next.entry.uid)) this.time.after(500, () => this.#putRecord(key, undefined));
    return { kind: 'stored', stored };
  }

  remove(key: string, base: StoredRecord): 'removed' | 'conflict' {
    const there = this.records.get(key);
    if (there && there.resourceVersion !== base.resourceVersion) return 'conflict';
    if (there) this.#putRecord(key, undefined);
    return 'removed';
  }

  /** A component's own write, past the fence. */
  patch(key: string, uid: string, component: string, credential: string, value: number): 'ok' | 'forbidden' {
    const record = this.records.get(key)?.record;
    const isCurrent = record !== undefined && record.credentialId === credential;
    const isPrevious = record?.previousCredential?.id === credential;
    if (!record || (!isCurrent && !isPrevious) || !this.entries.has(uid)) {
      this.rejected += 1;
      return 'forbidden';
    }
    const run = this.credentials.get(credential);
    hold(run === `${key}#${record.seq}`, 'I1, I5: only the last run may write', () => `${run} wrote in ${record.seq}`);
    hold(record.entry.uid === uid, 'I19: nothing of one uid is used for another', () => `${key} wrote to ${uid}`);
    this.publish(uid, component, value);
    return 'ok';
  }

  publish(uid: string, component: string, value: number): void {
    const entry = this.entries.get(uid);
    if (!entry || entry.outputs[component]?.value === value) return;
    this.edit(uid, { outputs: { ...entry.outputs, [component]: { value } } });
  }

  withdraw(uid: string, component: string): void {
    const entry = this.entries.get(uid);
    if (!entry?.outputs[component]) return;
    const { [component]: _, ...outputs } = entry.outputs;
    this.edit(uid, { outputs });
  }

  /** Every call to a component. */
  dispatch(key: string, record: RunRecord, credential: string): void {
    const run = `${key}#${record.seq}`;
    hold(!this.dispatched.has(run), 'I9: one dispatch for each seq', () => run);
    hold(this.credentials.get(credential) === run, 'I9: its token is of that run', () => run);
    const stored = this.records.get(key)?.record;
    const isStored = stored === undefined || stored.seq >= record.seq;
    hold(isStored, 'I15: no run without a stored start record', () => `${run}, stored ${stored?.seq}`);
    this.dispatched.add(run);
    this.log.push({ at: this.time.now, key, reasons: record.reasons });
    this.calls.set(record.component, (this.calls.get(record.component) ?? 0) + 1);
  }

  say(key: string, seq: number, outcome: OutcomeName): void {
    const run = `${key}#${seq}`;
    this.said.set(run, [...(this.said.get(run) ?? []), outcome]);
  }

  digest(entry: SimEntry, component: SimComponent): string {
    const { name, generation } = component.registration;
    let digest = entry.digests.get(name);
    if (digest === undefined) {
      const read = [...component.needs, ...component.likes].map((other) => entry.outputs[other]?.value ?? '-');
      const spec = component.specFields.map((field) => entry.spec.cluster[field] ?? '-');
      digest = `${read.join()}|${spec.join()}|${generation}|${entry.force[name] ?? ''}`;
      entry.digests.set(name, digest);
    }
    return digest;
  }

  #check(key: string, next: RunRecord, before: RunRecord | undefined): void {
    const about = (): string => `${key}: ${JSON.stringify(before)} → ${JSON.stringify(next)}`;
    hold(next.credentialId === undefined || next.phase === 'Running', 'CRD: a credential dies with its run', about);
    hold(next.seq >= (before?.seq ?? 0), 'CRD: seq cannot go back', about);
    if (before && next.seq > before.seq) {
      hold(next.seq === before.seq + 1, 'seq has no gaps', about);
      hold(before.phase === 'Idle', 'a run that is on is ended before the next starts', about);
    }
    const { lastOutcome: last } = next;
    const old = before?.lastOutcome;
    if (!last || last === old) return;
    if (last.seq === old?.seq) {
      hold(isDeepStrictEqual(last, old), 'I4, I6: a final outcome never changes', about);
      return;
    }
    hold(last.seq === next.seq, 'I3: an outcome is of the current run', about);
    hold(next.phase === 'Idle' && next.credentialId === undefined, 'a credential dies with its run', about);
    const said = this.said.get(`${key}#${last.seq}`) ?? [];
    const isFault = last.outcome === 'Retry';
    hold(isFault || said.includes(last.outcome), 'I3, I7: nothing but Retry comes of what nobody said', about);
  }

  #put(entry: SimEntry): void {
    this.#version += 1;
    const next = { ...entry, version: this.#version };
    this.entries.set(entry.ref.uid, next);
    for (const watch of this.watchers) watch(entry.ref.uid, next);
  }

  #putRecord(key: string, record: undefined): undefined;
  #putRecord(key: string, record: RunRecord): StoredRecord;
  #putRecord(key: string, record: RunRecord | undefined): StoredRecord | undefined {
    this.#version += 1;
    const stored = record && { record, resourceVersion: String(this.#version) };
    if (stored) this.records.set(key, stored);
    else this.records.delete(key);
    for (const watch of this.recordWatchers) watch(key, stored);
    return stored;
  }
}

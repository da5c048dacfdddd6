import type { OutcomeName } from '../../../src/api/inventory/reconcile-run.ts';
import type { RunRecord, StoredRecord } from '../../../src/inventory/core/run-record.ts';
import { fenceViolation } from '../../../src/inventory/policy/fence.ts';
import type { Swap } from '../../../src/inventory/ports.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { fenced } from './fenced.ts';
import { checkRecord } from './record-checks.ts';
import { type EntryFacts, newFacts, type SimEntry, simEntryOf } from './simulated-entry.ts';
import { epochMs } from './simulated-process.ts';
import { Timeline } from './timeline.ts';
import { hold } from './violation.ts';

/** What a component reads, for what it makes of it. */
export interface SimComponent {
  readonly name: string;
  /** As it is registered in the beginning. */
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
  /** It is deleted when nobody reads its output any more, and does not say who does. */
  readonly waitsForReaders?: boolean;
  /** It never answers 202. */
  readonly isSynchronous?: boolean;
  /** What it publishes is the version of the kubeconfig. */
  readonly makesKubeconfig?: boolean;
  /** The component whose kubeconfig it uses. */
  readonly usesKubeconfigOf?: string | undefined;
  /** It answers 503. */
  isDown?: boolean;
}

/** A credential for the API server. */
interface Token {
  readonly run: string;
  readonly expiresAt: number;
}

/** The managed cluster of an entry. */
interface Cluster {
  /** Of the kubeconfig that it accepts. */
  version: number;
  /** Until when it accepts the one before. */
  previousUntil: number;
}

export interface Dispatched {
  readonly at: number;
  readonly key: string;
  readonly reasons: readonly string[];
}

/** What motherships and components share: the API server with its fence, and the log of what happened. Checks each write as it is made. */
export class SimulatedWorld {
  readonly time = new Timeline();
  readonly random: () => number;
  readonly components: ReadonlyMap<string, SimComponent>;
  readonly registrations = new Map<string, Registration>();
  readonly entries = new Map<string, SimEntry>();
  readonly records = new Map<string, StoredRecord>();
  readonly watchers = new Set<(uid: string, entry: SimEntry | undefined) => void>();
  readonly recordWatchers = new Set<(key: string, stored: StoredRecord | undefined) => void>();
  readonly registrationWatchers = new Set<(registration: Registration) => void>();
  /** While true, whatever can go wrong may. */
  faulty = false;
  /** Events of watches may be lost. */
  isLossy = false;
  /** Components may fail for good, which they do for an hour. */
  isSevere = false;
  /** Milliseconds that a token lasts. */
  tokenMs = 600_000;
  /** Entries whose managed cluster answers nobody. */
  readonly away = new Set<string>();
  /** By credential id. */
  readonly tokens = new Map<string, Token>();
  /** `key#seq` of calls that were made, and how many things had happened by then. */
  readonly dispatched = new Map<string, number>();
  /** Calls by component. */
  readonly calls = new Map<string, number>();
  /** When each call was made, in order. */
  readonly log: Dispatched[] = [];
  /** By `key#seq`: until when the run may be silent, as it was told by whoever led. */
  readonly granted = new Map<string, number>();
  /** By key: when the last run that was started ended, if that was with Done. */
  readonly doneAt = new Map<string, number>();
  /** Writes that the fence refused. */
  rejected = 0;
  /** How often each invariant about a component that was refused something was at stake. */
  readonly stakes = new Map<string, number>();
  /** Shares of the longest delay that each Retry waited, to be uniform. */
  readonly backoffs = { sum: 0, count: 0 };
  readonly #clusters = new Map<string, Cluster>();
  readonly #started = new Set<string>();
  /** By `key#seq`. */
  readonly #said = new Map<string, OutcomeName[]>();
  readonly #refused = new Map<string, string>();
  #version = 0;
  #credentials = 0;
  #happened = 0;

  constructor(random: () => number, components: readonly SimComponent[]) {
    this.random = random;
    this.components = new Map(components.map((component) => [component.name, component]));
    for (const { name, registration } of components) this.registrations.set(name, registration);
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

  /** A number that grows with everything that is asked for one. */
  happened(): number {
    this.#happened += 1;
    return this.#happened;
  }

  create(name: string, uid: string, cluster: Readonly<Record<string, number>>): void {
    this.#put(newFacts({ namespace: 'inv', name, uid }, cluster));
  }

  edit(uid: string, change: Partial<Omit<EntryFacts, 'ref'>>): void {
    const before = this.entries.get(uid);
    if (before) this.#put({ ...before.facts, ...change });
  }

  removeEntry(uid: string): void {
    this.entries.delete(uid);
    for (const watch of this.watchers) watch(uid, undefined);
    for (const [key, { record }] of this.records) if (record.entry.uid === uid) this.#putRecord(key, undefined);
  }

  /** Its registration is another one. */
  register(name: string): void {
    const before = this.registrations.get(name);
    if (!before) return;
    const registration = { ...before, generation: before.generation + 1 };
    this.registrations.set(name, registration);
    for (const watch of this.registrationWatchers) watch(registration);
  }

  /** Of the kubeconfig that the cluster of an entry accepts now. */
  kubeconfigVersion(uid: string): number {
    return this.#clusters.get(uid)?.version ?? 1;
  }

  /** A new kubeconfig, and how long the one before it still is good. */
  rotate(uid: string, overlapMs: number): void {
    this.#clusters.set(uid, { version: this.kubeconfigVersion(uid) + 1, previousUntil: this.time.now + overlapMs });
  }

  acceptsKubeconfig(uid: string, version: number): boolean {
    const { version: current, previousUntil } = this.#clusters.get(uid) ?? { version: 1, previousUntil: 0 };
    return version === current || (version === current - 1 && this.time.now < previousUntil);
  }

  issue(key: string, seq: number): string {
    this.#credentials += 1;
    const id = `JTI=${this.#credentials}`;
    this.tokens.set(id, { run: `${key}#${seq}`, expiresAt: this.time.now + this.tokenMs });
    return id;
  }

  isExpired(credential: string): boolean {
    return (this.tokens.get(credential)?.expiresAt ?? 0) <= this.time.now;
  }

  /** Less than half of its time is left. */
  isOld(credential: string | undefined): boolean {
    const { expiresAt = 0 } = this.tokens.get(credential ?? '') ?? {};
    return expiresAt - this.time.now < this.tokenMs / 2;
  }

  swap(key: string, next: RunRecord, base: StoredRecord | undefined): Swap {
    const there = this.records.get(key);
    if (there?.resourceVersion !== base?.resourceVersion) return { kind: 'conflict', stored: there };
    checkRecord(key, next, there?.record, (run) => ({
      said: this.#said.get(run) ?? [],
      refused: this.#refused.get(run),
    }));
    if (next.phase === 'Running') this.#started.add(`${key}#${next.seq}`);
    this.#noteEnd(key, next, there?.record);
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

  /** A component's own write: past authentication, which knows when a token ends, and past the fence, which knows the runs. */
  patch(key: string, uid: string, component: string, credential: string, value: number): 'ok' | 'refused' {
    const token = this.tokens.get(credential);
    const run = token?.run ?? '';
    if (this.isExpired(credential)) return this.refuse(run, 'I7: the end of a token is no failure');
    if (this.fault(0.02)) return this.refuse(run, 'I16: what the fence cannot answer is no failure');
    const record = this.records.get(key)?.record;
    const refusal = fenceViolation(
      record && fenced(record),
      { entryUid: uid, component, credentialId: credential },
      epochMs + this.time.now,
    );
    if (refusal || !this.entries.has(uid)) {
      this.rejected += 1;
      return 'refused';
    }
    hold(record?.phase === 'Running', 'I1: only a run that is on may write', () => JSON.stringify(record));
    hold(run === `${key}#${record.seq}`, 'I1, I5: only the last run may write', () => `${run} in ${record.seq}`);
    hold(record.entry.uid === uid, 'I19: nothing of one uid is used for another', () => `${key} wrote to ${uid}`);
    this.publish(uid, component, value);
    return 'ok';
  }

  /** The run could not do what it had to: `invariant` says what must not come of it. */
  refuse(run: string, invariant: string): 'refused' {
    this.#refused.set(run, invariant);
    this.stakes.set(invariant, (this.stakes.get(invariant) ?? 0) + 1);
    return 'refused';
  }

  publish(uid: string, component: string, value: number): void {
    const facts = this.entries.get(uid)?.facts;
    if (!facts || facts.outputs[component]?.value === value) return;
    this.edit(uid, { outputs: { ...facts.outputs, [component]: { value } } });
  }

  withdraw(uid: string, component: string): void {
    const facts = this.entries.get(uid)?.facts;
    if (!facts?.outputs[component]) return;
    const { [component]: _, ...outputs } = facts.outputs;
    this.edit(uid, { outputs });
  }

  /** Every call to a component. */
  dispatch(key: string, record: RunRecord, credential: string): void {
    const run = `${key}#${record.seq}`;
    hold(!this.dispatched.has(run), 'I9: one dispatch for each seq', () => run);
    hold(this.tokens.get(credential)?.run === run, 'I9: its token is of that run', () => run);
    hold(this.#started.has(run), 'I15: no run without a stored start record', () => run);
    this.dispatched.set(run, this.happened());
    this.log.push({ at: this.time.now, key, reasons: record.reasons });
    this.calls.set(record.component, (this.calls.get(record.component) ?? 0) + 1);
  }

  say(key: string, seq: number, outcome: OutcomeName): void {
    const run = `${key}#${seq}`;
    const said = this.#said.get(run);
    if (said) said.push(outcome);
    else this.#said.set(run, [outcome]);
  }

  #noteEnd(key: string, next: RunRecord, before: RunRecord | undefined): void {
    const { lastOutcome: last, nextAtMs = 0 } = next;
    if (next.phase !== 'Idle') this.doneAt.delete(key);
    // Unless it is to run again at once.
    else if (before?.phase !== 'Idle' && last?.seq === next.seq && last.outcome === 'Done' && nextAtMs > last.endedAtMs)
      this.doneAt.set(key, this.time.now);
  }

  #put(facts: EntryFacts): void {
    this.#version += 1;
    const next = simEntryOf(facts, this.#version);
    this.entries.set(facts.ref.uid, next);
    for (const watch of this.watchers) watch(facts.ref.uid, next);
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

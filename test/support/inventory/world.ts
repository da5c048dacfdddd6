import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { forceAnnotation } from '../../../src/api/inventory/names.ts';
import type { OutcomeName } from '../../../src/api/inventory/reconcile-run.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { type ComponentKey, keyText } from '../../../src/inventory/key.ts';
import { writeAuthorizationViolation } from '../../../src/inventory/policy/run-authorization.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { CallChecks } from './call-checks.ts';
import type { RegistrationSeed } from './memory-registrations.ts';
import { MemoryInventory } from './memory-stores.ts';
import { RecordChecks } from './record-checks.ts';
import { authorizationOf } from './run-authorization.ts';
import type { CheckedWorld, SimComponent, SimManager } from './simulation.ts';
import { epochMs, Timeline } from './timeline.ts';
import { assertInvariant } from './violation.ts';

/** A credential of the API server. */
interface Token {
  /** `key#seq`. The seq of a token for a start is known once the start is stored. */
  readonly key: string;
  readonly expiresAt: number;
}

/** The managed cluster of an entry. */
interface Cluster {
  /** Version of the accepted kubeconfig. */
  version: number;
  /** Time until which it accepts the previous version. */
  previousUntil: number;
}

export interface Called {
  readonly at: number;
  readonly key: string;
  readonly reasons: readonly string[];
}

/** Outputs by component name. */
export type Outputs = Readonly<Record<string, { readonly value: number }>>;
export const outputsOf = ({ content }: Entry): Outputs => content.status.outputs as Outputs;

/** Shared state of managers and components: the API server with write authorization, and the event log. Checks each write and call. */
export class SimulatedWorld implements CheckedWorld {
  readonly time = new Timeline();
  readonly inventory = new MemoryInventory();
  readonly random: () => number;
  readonly components: ReadonlyMap<string, SimComponent>;
  readonly registrations = new Map<string, RegistrationSeed & { readonly generation: number }>();
  readonly managers = new Set<SimManager>();
  readonly records: RecordChecks;
  readonly calls: CallChecks;
  /** Whether faults may occur. */
  faulty = false;
  /** Whether watch events may be lost. */
  isLossy = false;
  /** Whether components may answer Failed, which lasts for an hour. */
  isSevere = false;
  /** Token lifetime, milliseconds. */
  tokenMs = 600_000;
  /** Entries with an unreachable managed cluster. */
  readonly away = new Set<string>();
  /** The entry whose handling always fails. */
  poisoned: string | undefined;
  /** All calls in order. */
  readonly log: Called[] = [];
  /** Number of actions and checks, by name. */
  readonly happened = new Map<string, number>();
  /** The manager whose request the API server executes. */
  writer: SimManager | undefined;
  readonly #tokens = new Map<string, Token>();
  readonly #clusters = new Map<string, Cluster>();
  #credentials = 0;
  #order = 0;
  #problem: Error | undefined;

  constructor(random: () => number, components: readonly SimComponent[]) {
    this.random = random;
    this.components = new Map(components.map((component) => [component.name, component]));
    for (const { name, registration } of components) this.registrations.set(name, { generation: 1, ...registration });
    this.records = new RecordChecks(this);
    this.calls = new CallChecks(this, this.records);
    this.inventory.onRecord = (key, now, before) => this.check(() => this.records.written(key, now, before));
    this.inventory.onEntry = (now, before) => this.check(() => this.#entryWritten(now, before));
    this.time.afterEach = () => {
      if (this.#problem) throw this.#problem;
    };
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  /** Whether a fault occurs now. */
  fault(probability: number): boolean {
    return this.faulty && this.random() < probability;
  }

  between(least: number, most: number): number {
    return Math.floor(least + this.random() * (most - least + 1));
  }

  count(what: string): void {
    this.happened.set(what, (this.happened.get(what) ?? 0) + 1);
  }

  /** Returns increasing numbers, to order events. */
  next(): number {
    this.#order += 1;
    return this.#order;
  }

  /** Runs a check where a thrown error would be lost; a failure ends the timeline. */
  check(assertion: () => void): void {
    try {
      assertion();
    } catch (error) {
      this.#problem ??= error instanceof Error ? error : new Error(String(error));
    }
  }

  create(name: string, cluster: Readonly<Record<string, number>>): Entry {
    return this.inventory.create({ name, spec: { cluster } });
  }

  entry(uid: string): Entry | undefined {
    return this.inventory.entries().find(({ ref }) => ref.uid === uid);
  }

  edit(uid: string, change: Parameters<MemoryInventory['edit']>[1]): void {
    const entry = this.entry(uid);
    if (entry) this.inventory.edit(entry.ref, change);
  }

  /** Sets the force annotation of a component. */
  force(uid: string, component: string): void {
    const name = forceAnnotation(component);
    this.edit(uid, ({ metadata }) => {
      const { annotations = {} } = metadata;
      metadata.annotations = { ...annotations, [name]: `${Number(annotations[name] ?? 0) + 1}` };
    });
  }

  /** Changes the registration of a component. */
  register(name: string): void {
    const before = this.registrations.get(name);
    if (!before) return;
    this.registrations.set(name, { ...before, generation: before.generation + 1 });
    for (const manager of this.managers) manager.registrationChanged(name);
  }

  /** Version of the kubeconfig that the cluster of an entry accepts. */
  kubeconfigVersion(uid: string): number {
    return this.#clusters.get(uid)?.version ?? 1;
  }

  /** Rotates the kubeconfig; the previous one stays valid for `overlapMs`. */
  rotate(uid: string, overlapMs: number): void {
    this.#clusters.set(uid, { version: this.kubeconfigVersion(uid) + 1, previousUntil: this.time.now + overlapMs });
  }

  acceptsKubeconfig(uid: string, version: number): boolean {
    const { version: current, previousUntil } = this.#clusters.get(uid) ?? { version: 1, previousUntil: 0 };
    return version === current || (version === current - 1 && this.time.now < previousUntil);
  }

  issue(key: string): string {
    this.#credentials += 1;
    const id = `JTI=${this.#credentials}`;
    this.#tokens.set(id, { key, expiresAt: this.time.now + this.tokenMs });
    return id;
  }

  isExpired(credential: string): boolean {
    return (this.#tokens.get(credential)?.expiresAt ?? 0) <= this.time.now;
  }

  /** A component's own write. Authentication checks the token's lifetime; write authorization checks its run. */
  patch(key: ComponentKey, seq: number, credential: string, value: number): 'ok' | 'refused' {
    const text = keyText(key);
    const run = `${text}#${seq}`;
    if (this.isExpired(credential)) return this.refuse(run, 'I7: an expired token is no failure');
    if (this.fault(0.02)) return this.refuse(run, 'I16: an unavailable authorization is no failure');
    const record = this.inventory.record(key)?.record;
    const who = { ...key, credentialId: credential };
    const refusal = writeAuthorizationViolation(record && authorizationOf(record), who, epochMs + this.time.now);
    if (refusal || !this.entry(key.entryUid)) {
      this.count('rejected');
      return 'refused';
    }
    const about = (): string => `${run} by ${credential}: ${JSON.stringify(record)}`;
    assertInvariant(record?.phase === 'Running', 'I1: only an active run may write', about);
    assertInvariant(record.seq === seq, 'I1, I5: only the last run may write', about);
    assertInvariant(this.#tokens.get(credential)?.key === text, 'I1: a component writes with its own token', about);
    assertInvariant(record.entry.uid === key.entryUid, 'I19: no credential of one uid is used for another', about);
    this.publish(key, value);
    return 'ok';
  }

  /** Records a rejected request of a run; `invariant` names the rule that then applies. */
  refuse(run: string, invariant: string): 'refused' {
    this.records.refused(run, invariant);
    this.count(invariant);
    return 'refused';
  }

  publish({ entryUid, component }: ComponentKey, value: number): void {
    this.edit(entryUid, (object) => {
      object.status = { ...object.status, outputs: { ...object.status?.outputs, [component]: { value } } };
    });
  }

  withdraw({ entryUid, component }: ComponentKey): void {
    this.edit(entryUid, (object) => {
      const { [component]: _, ...outputs } = object.status?.outputs ?? {};
      object.status = { ...object.status, outputs };
    });
  }

  /** Records a call to a component. */
  called(by: SimManager, request: ReconcileRequest, registration: Registration): void {
    const { id: uid } = request.entry;
    const key = keyText({ entryUid: uid, component: request.component });
    this.check(() => this.calls.called(by, request, registration));
    this.log.push({ at: this.time.now, key, reasons: request.run.reasons });
  }

  answered(run: string, outcome: OutcomeName): void {
    this.records.answered(run, outcome);
  }

  /** Checks writes of managers into entries. */
  #entryWritten(now: Entry, before: Entry | undefined): void {
    if (!this.writer) return;
    const [is, was] = [outputsOf(now), before ? outputsOf(before) : {}];
    for (const component of Object.keys(is)) {
      if (is[component]?.value === was[component]?.value) continue;
      const key = { entryUid: now.ref.uid, component };
      const isStored = this.records.mayWriteOutputs(keyText(key), this.writer);
      const about = (): string => `${component}: ${JSON.stringify(this.inventory.record(key)?.record)}`;
      assertInvariant(isStored, 'I3: an outcome is stored before its outputs are', about);
    }
  }
}

import assert from 'node:assert/strict';
import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { Manager } from '../../../src/engine/manager.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { parseRunId } from '../../../src/inventory/key.ts';
import { InventoryManager } from '../../../src/inventory/manager/inventory-manager.ts';
import type { IssuedToken, Reply, ReportAnswer } from '../../../src/inventory/ports.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import type { Clock } from '../../../src/kit/clock.ts';
import type { Client } from '../../../src/kube/client.ts';
import type { RecordedEvent } from '../../../src/kube/event-object.ts';
import { type Log, type LogFields, noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import type { MemoryRegistrations } from './memory-registrations.ts';
import { MemoryRemote } from './memory-remote.ts';
import type { Link, MemoryInventory, MemoryStores } from './memory-stores.ts';

/** Behavior of a component. */
export type Behavior = (
  request: ReconcileRequest,
  signal: AbortSignal,
  registration: Registration,
) => Reply | Promise<Reply>;

export const answer = (outcome: Outcome): Reply => ({ kind: 'outcome', outcome });
export const done = (outputs?: Record<string, unknown>): Reply =>
  answer(outputs === undefined ? { outcome: 'Done' } : { outcome: 'Done', outputs });
export const notReady = (...paths: string[]): Reply => {
  const [first = '', ...rest] = paths.map((path) => path);
  const missing = (path: string) => ({ path, want: 'present' as const });
  return answer({ outcome: 'NotReady', missing: [missing(first), ...rest.map(missing)] });
};

export interface InMemoryManagerOptions {
  readonly clock: Clock;
  readonly inventory: MemoryInventory;
  readonly registrations: MemoryRegistrations;
  readonly random: () => number;
  readonly components: Readonly<Record<string, Behavior>>;
  /** Prefix of token names, to distinguish managers. */
  readonly name?: string;
  /** Simulated delays and losses of requests; without it, everything is immediate. */
  readonly link?: Link;
  /** Issues run tokens. Default: a new one each time, valid for ten minutes. */
  readonly issue?: (entry: Entry, registration: Registration) => IssuedToken | Promise<IssuedToken>;
}

/** The real manager with in-memory stores and clients. */
export class InMemoryManager {
  readonly manager: InventoryManager;
  readonly stores: MemoryStores;
  readonly calls: ReconcileRequest[] = [];
  readonly audited: string[] = [];
  readonly warnings: string[] = [];
  readonly withdrawn: string[] = [];
  /** `ENTRY-UID/COMPONENT` of each component that lost its access. */
  readonly withdrawnComponents: string[] = [];
  readonly statusPatches: { readonly component: string; readonly patch: unknown }[] = [];
  readonly recorded: RecordedEvent[] = [];
  readonly metrics = createMetrics();
  readonly remote = new MemoryRemote();
  readonly errors: (readonly [message: string, fields: LogFields])[] = [];
  proved = true;
  /** Called before each token request; may throw. */
  issuing: (entry: Entry, registration: Registration) => void = () => {};
  /** Called before the access of a component is withdrawn; may throw. */
  withdrawing: () => void = () => {};
  /** Called before each status write of a registration; may throw. */
  writing: (component: string) => void = () => {};
  #tokens = 0;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  readonly #log: Log = {
    ...noLog,
    warn: (message) => void this.warnings.push(message),
    error: (message, fields = {}) => void this.errors.push([message, fields]),
    child: () => this.#log,
  };
  readonly #options: InMemoryManagerOptions;

  constructor(options: InMemoryManagerOptions) {
    this.#options = options;
    const { clock, inventory, registrations, random, components } = options;
    this.stores = inventory.open(options.link);
    const issue = (): IssuedToken => {
      this.#tokens += 1;
      const id = `${options.name ?? 'm'}-${this.#tokens}`;
      return { id, token: `token ${id}`, expiresAtMs: clock.now() + 600_000 };
    };
    const client: Pick<Client, 'mergePatch'> = {
      mergePatch: async (_resource, { name }, patch) => {
        this.writing(name);
        this.statusPatches.push({ component: name, patch });
        return { apiVersion: '', kind: '', metadata: { name } };
      },
    };
    const isProved = (): boolean => this.proved;
    this.manager = new InventoryManager({
      entries: this.stores.entries,
      runs: this.stores.runs,
      registrations: registrations.registrations,
      components: {
        invoke: async (registration, request, signal) => {
          this.calls.push(request);
          const behave = components[registration.name];
          return behave ? behave(request, signal, registration) : done();
        },
      },
      tokens: {
        forRun: async (entry, registration, signal) => {
          signal.throwIfAborted();
          this.issuing(entry, registration);
          return options.issue ? options.issue(entry, registration) : issue();
        },
        forCall: async () => 'call',
      },
      access: {
        prepare: async () => {},
        withdraw: async ({ uid }) => void this.withdrawn.push(uid),
        deleteAccount: async ({ uid }, component) => {
          this.withdrawing();
          this.withdrawnComponents.push(`${uid}/${component}`);
        },
      },
      authorization: {
        get proved() {
          return isProved();
        },
        prove: async () => {},
      },
      remote: this.remote,
      client: client as Client,
      journal: { append: async ({ code = '' }) => void this.audited.push(code), available: true },
      events: { record: (event) => void this.recorded.push(event), close: async () => {} },
      clock,
      random,
      log: this.#log,
      metrics: this.metrics,
      api: { url: 'https://api.test', ca: undefined },
      callbackUrl: 'https://callbacks.test',
      account: 'system:serviceaccount:drawbridge:drawbridge',
      watchAgeMs: () => 0,
    });
  }

  start(): this {
    const { clock, random } = this.#options;
    const manager = new Manager({ clock, log: noLog, random });
    for (const controller of this.manager.controllers()) manager.add(controller);
    this.#stop = new AbortController();
    this.#running = manager.run(this.#stop.signal);
    return this;
  }

  /** Simulates a crash: active operations never complete. */
  crash(): void {
    this.#stop.abort();
    this.stores.close();
  }

  /** Stops the manager; resolves when all operations have ended. */
  async stop(): Promise<void> {
    this.crash();
    await this.#running;
  }

  callsOf(component: string): ReconcileRequest[] {
    return this.calls.filter((request) => request.component === component);
  }

  /** Reports about the run of a call, if not stated otherwise with its token. */
  report(call: ReconcileRequest | undefined, body: object, credential?: string): Promise<ReportAnswer> {
    assert.ok(call);
    const run = parseRunId(call.run.id);
    assert.ok(run);
    return this.manager.reports.report(run, credential ?? credentialOf(call), { run: call.run.id, ...body });
  }

  /** Values of a metric by exposed labels in braces (`''` without labels). */
  async metric(name: string): Promise<ReadonlyMap<string, number>> {
    const series = new Map<string, number>();
    for (const line of (await this.metrics.expose()).split('\n')) {
      const [, metric, labels = '', value] = /^(\w+)(\{.*\})? (\S+)$/.exec(line) ?? [];
      if (metric === name) series.set(labels, Number(value));
    }
    return series;
  }
}

/** The ID of the token of a call. */
export const credentialOf = ({ auth }: Pick<ReconcileRequest, 'auth'>): string => auth.token.replace('token ', '');

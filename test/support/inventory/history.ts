import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { forceAnnotation } from '../../../src/api/inventory/names.ts';
import { digestInputs } from '../../../src/inventory/core/digest.ts';
import type { RunRecord } from '../../../src/inventory/core/run-record.ts';
import type { Entry, EntryContent } from '../../../src/inventory/entry.ts';
import { type ComponentKey, keyText, readRunId } from '../../../src/inventory/key.ts';
import { fenceViolation } from '../../../src/inventory/policy/fence.ts';
import type { Reply } from '../../../src/inventory/ports.ts';
import { sleep } from '../../../src/kit/clock.ts';
import { valueAt } from '../../../src/kit/json-pointer.ts';
import { ApiError, TransportError } from '../../../src/kube/errors.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { fenced } from './fenced.ts';
import { answer, type Behaviour, done, MemoryMothership, notReady } from './memory-mothership.ts';
import { MemoryRegistrations } from './memory-registrations.ts';
import { MemoryInventory } from './memory-stores.ts';
import { hold } from './violation.ts';

/** Longer than a history comes to rest. */
const intervalMs = 120_000;
/** Longer than anybody waits for an answer. */
const hangsMs = 30_000;
const startMs = Date.UTC(2026, 10, 21, 9);
const mostAtOnce = 1;
/** How far two clocks are apart, or one jumps. */
const clocksApartMs = 300_000;
/** Of the two that read one another. */
const highest = 4;

const fast = {
  intervalSeconds: intervalMs / 1000,
  retry: { baseSeconds: 1, capSeconds: 5 },
  timeoutSeconds: 5,
  leaseSeconds: 5,
  maxConcurrent: mostAtOnce,
};
const network = { name: 'network', ...fast };
/** Those that need one another are in a history together, or not at all. */
const groups = [
  [
    { name: 'cluster', reads: ['/status/outputs/network/vnet'], ...fast },
    { name: 'kubeconfig', reads: ['/status/outputs/cluster/endpoint'], writes: ['/status/outputs/access'], ...fast },
  ],
  [
    { name: 'left', reads: ['/status/outputs/right/n'], ...fast },
    { name: 'right', reads: ['/status/outputs/left/n'], ...fast },
  ],
  [{ name: 'patcher', reads: ['/status/outputs/network/vnet'], ...fast }],
];

const vnetOf = (content: EntryContent | undefined): string =>
  `v-${valueAt(content, '/spec/components/network/config/size') ?? 0}`;

const nextOf = (content: EntryContent | undefined, other: string): number =>
  Math.min(highest, Number(valueAt(content, `/status/outputs/${other}/n`) ?? 0) + 1);

/** What is known of a key from outside. */
interface KeyFacts {
  /** How many motherships there had been when it was called last, if only one was there. */
  started: number;
  /** Monotonic milliseconds; of the last run that ended with an outcome. */
  endedAt: number;
  calledAt: number;
  /** When it was told of a remote event, and who. */
  remote: { readonly at: number; readonly ship: MemoryMothership } | undefined;
}

/**
 * One history: a mothership or two that crash, an API server that fails, a watch that stands still, components that misbehave, one of
 * them writing by itself, two reading one another; users who edit, force, suspend, delete and make anew.
 */
export class History {
  readonly clock = new SimulatedClock(startMs);
  readonly inventory = new MemoryInventory();
  readonly registrations: MemoryRegistrations;
  readonly random: () => number;
  readonly ships: MemoryMothership[] = [];
  readonly #names: readonly string[];
  readonly #components: readonly { readonly name: string }[];
  readonly #called = new Set<string>();
  readonly #keys = new Map<string, KeyFacts>();
  readonly #nameOfShip = new Map<MemoryMothership, string>();
  /** Calls that are on, by mothership and component. */
  readonly #on = new Map<string, number>();
  /** The first thing that was wrong. Where it shows, nobody would hear of what is thrown. */
  #problem: string | undefined;
  #calm = false;
  #poisoned: string | undefined;
  #started = 0;
  #jumps = 0;
  /** How often what could be said of a run was. */
  readonly seen = { calls: 0, refused: 0, remotes: 0, poisoned: 0 };

  constructor(random: () => number) {
    this.random = random;
    this.#names = random() < 0.5 ? ['e0'] : ['e0', 'e1'];
    this.#components = [network, ...groups.flatMap((group) => (random() < 0.45 ? group : []))];
    this.registrations = new MemoryRegistrations(this.clock, this.#components);
    for (const name of this.#names) this.inventory.create({ name });
    this.inventory.fault = (operation, when) => {
      if (this.#calm || this.random() > 0.05) return undefined;
      if (operation === 'run.swap' && when === 'after') return new TransportError('cut', undefined, false);
      if (when === 'after') return undefined;
      return this.random() < 0.5 ? new ApiError(500, '', 'away') : new TransportError('refused', undefined, true);
    };
    this.#start();
  }

  async act(): Promise<void> {
    const { random, inventory } = this;
    const ship = this.#oneOf(this.ships);
    const name = this.#oneOf(this.#names) ?? '';
    const { name: component } = this.#oneOf(this.#components) ?? network;
    const entry = inventory.entry({ name });
    if (!entry) inventory.create({ name });
    else await this.#do(ship, entry, component);
    await this.clock.advance(random() * 1500);
  }

  async #do(ship: MemoryMothership | undefined, { ref, deleting }: Entry, component: string): Promise<void> {
    const { random, inventory } = this;
    const what = random();
    if (what < 0.2) {
      inventory.edit(ref, ({ spec }) => {
        spec.components = { network: { enabled: true, config: { size: Math.floor(random() * 1000) } } };
      });
    } else if (what < 0.28) {
      inventory.edit(ref, ({ metadata }) => {
        metadata.annotations = { ...metadata.annotations, [forceAnnotation(component)]: `${random()}` };
      });
    } else if (what < 0.4) this.#tellRemote(ship, { entryUid: ref.uid, component });
    else if (what < 0.48) ship?.stores.pause();
    else if (what < 0.56) ship?.stores.resume();
    else if (what < 0.62) ship?.stores.relist();
    else if (what < 0.72) await this.#takeOver();
    else if (what < 0.8) {
      // As far as may be, one time in five.
      this.#jump(random() < 0.2 ? Math.sign(random() - 0.5) : 2 * random() - 1);
    } else if (what < 0.86) {
      inventory.edit(ref, ({ spec }) => {
        spec.suspend = random() < 0.5;
      });
    } else if (what < 0.92) this.#poisoned = this.#poisoned === undefined ? ref.uid : undefined;
    else if (!deleting) inventory.delete(ref);
  }

  /** Nothing goes wrong any more. Everything comes to rest, what was deleted goes, and is made anew. */
  async settle(): Promise<void> {
    const { inventory, clock } = this;
    this.#calm = true;
    this.#poisoned = undefined;
    while (this.ships.length > 1) await this.ships.shift()?.stop();
    this.ships[0]?.stores.relist();
    for (const name of this.#names) {
      if (!inventory.entry({ name })) continue;
      inventory.edit({ name }, ({ spec }) => {
        spec.suspend = false;
      });
    }
    // Longer than whatever failed waits; what was not accepted and then could not be handled, by a clock that was set back: minutes.
    await clock.advance(this.seen.poisoned > 0 && this.#jumps > 0 ? 360_000 : 60_000);
    for (const name of this.#names) {
      const entry = inventory.entry({ name });
      hold(!entry?.deleting, 'R33: what is deleted goes', () => JSON.stringify(entry));
      if (!entry) inventory.create({ name });
    }
    await clock.advance(15_000);
    // An interval may just be over.
    const isOn = (): boolean => inventory.records().some(({ record }) => record.phase !== 'Idle');
    for (let i = 0; i < 20 && isOn(); i += 1) await clock.advance(500);
  }

  /** What has to be true of every entry in the end. */
  check(): void {
    this.checkSoFar();
    for (const name of this.#names) {
      const entry = this.inventory.entry({ name });
      hold(entry !== undefined, 'I8: what was made is there', () => name);
      this.#checkEntry(entry);
    }
    const uids = new Set(this.#names.map((name) => this.inventory.entry({ name })?.ref.uid));
    const left = this.inventory.records().find(({ record }) => !uids.has(record.entry.uid));
    hold(left === undefined, 'I19: nothing is left of what is gone', () => JSON.stringify(left));
  }

  checkSoFar(): void {
    hold(this.#problem === undefined, this.#problem ?? '', () => 'it was seen while it happened');
  }

  async checkDeletion(): Promise<void> {
    this.#calm = false;
    for (const name of this.#names) this.inventory.delete({ name });
    for (let i = 0; i < 4; i += 1) await this.clock.advance(1000);
    this.#calm = true;
    await this.clock.advance(60_000);
    const left = (): string => JSON.stringify([this.#names.map((name) => this.inventory.entry({ name }))]);
    hold(
      this.#names.every((name) => this.inventory.entry({ name }) === undefined),
      'R33: what is deleted goes',
      left,
    );
    hold(this.inventory.records().length === 0, 'I19: nothing is left of what is gone', left);
    this.checkSoFar();
  }

  async end(): Promise<void> {
    for (const ship of this.ships.splice(0)) await ship.stop();
  }

  #checkEntry(entry: Entry): void {
    const { outputs } = entry.content.status;
    const vnet = vnetOf(entry.content);
    const wanted: Readonly<Record<string, unknown>> = {
      network: { vnet },
      cluster: { endpoint: `e-${vnet}` },
      access: { for: `e-${vnet}` },
      left: { n: highest },
      right: { n: highest },
      patcher: { of: vnet },
    };
    const found = (): string => JSON.stringify([entry.ref.name, outputs, entry.components]);
    for (const { name } of this.#components) {
      const owner = name === 'kubeconfig' ? 'access' : name;
      const isRight = JSON.stringify(outputs[owner]) === JSON.stringify(wanted[owner]);
      hold(isRight, 'I11, R31: outputs follow from inputs', () => `${owner} ${found()}`);
    }
    const ready = entry.conditions.find(({ type }) => type === 'Ready');
    hold(ready?.status === 'True', 'I11: what can be done is done', () => `${ready?.message} ${found()}`);
    for (const registration of this.registrations.registrations.all()) {
      const key: ComponentKey = { entryUid: entry.ref.uid, component: registration.name };
      const record: RunRecord | undefined = this.inventory.record(key)?.record;
      const at = (): string => `${keyText(key)} ${JSON.stringify(record)}`;
      hold(record?.phase === 'Idle', 'I2: whatever ended is ended', at);
      hold(record.credentialId === undefined, 'I1: a credential dies with its run', at);
      const force = entry.annotations[forceAnnotation(registration.name)];
      const { digest } = digestInputs(entry.content, registration, force);
      hold(record.inputsDigest === digest, 'I10, I11: the last run was about the inputs of now', at);
      const { remote, calledAt } = this.#factsOf(key);
      const isFollowed = remote === undefined || remote.ship !== this.ships[0] || calledAt >= remote.at;
      hold(isFollowed, 'I8: a remote event that was taken is followed by a run', at);
    }
  }

  /** The wall clock, to so much of what it may be wrong by. */
  #jump(share: number): void {
    const { clock } = this;
    this.#jumps += 1;
    clock.setWall(startMs + clock.monotonic() + (share * clocksApartMs) / 2);
  }

  #oneOf<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.random() * items.length)];
  }

  readonly #chance = (share: number): boolean => !this.#calm && this.random() < share;

  #start(): void {
    this.#started += 1;
    const { clock, inventory, registrations, random } = this;
    const behave =
      (work: (content: EntryContent | undefined, request: ReconcileRequest) => Reply): Behaviour =>
      (request, signal) =>
        this.#call(ship, work, request, signal);
    const ship = new MemoryMothership({
      clock,
      inventory,
      registrations,
      random,
      name: `m${this.#started}`,
      components: {
        network: behave((content) => done({ network: { vnet: vnetOf(content) } })),
        cluster: behave((content) => {
          const { vnet } = (content?.status.outputs['network'] ?? {}) as { vnet?: string };
          return vnet === undefined
            ? notReady('/status/outputs/network/vnet')
            : done({ cluster: { endpoint: `e-${vnet}` } });
        }),
        kubeconfig: behave((content) => {
          const { endpoint } = (content?.status.outputs['cluster'] ?? {}) as { endpoint?: string };
          return endpoint === undefined
            ? notReady('/status/outputs/cluster/endpoint')
            : done({ access: { for: endpoint } });
        }),
        left: behave((content) => done({ left: { n: nextOf(content, 'right') } })),
        right: behave((content) => done({ right: { n: nextOf(content, 'left') } })),
        patcher: behave((content, request) => this.#patch(content, request)),
      },
    });
    // One entry of which nothing can be made.
    ship.issuing = ({ ref }) => {
      if (ref.uid !== this.#poisoned) return;
      this.seen.poisoned += 1;
      throw new TypeError('of this entry nothing can be made');
    };
    this.#guard(ship);
    this.#nameOfShip.set(ship, `m${this.#started}`);
    this.ships.push(ship.start());
  }

  #leads(ship: MemoryMothership): boolean {
    return this.ships.at(-1) === ship;
  }

  /** Once somebody else leads, it writes nothing that no compare-and-swap guards. */
  #guard(ship: MemoryMothership): void {
    const { runs, entries } = ship.stores;
    const guarded = <Args extends readonly unknown[], T>(write: (...args: Args) => Promise<T>) => {
      return (...args: Args): Promise<T> =>
        this.ships.at(-1) === ship
          ? write(...args)
          : Promise.reject(new TransportError('not leading', undefined, true));
    };
    const { swap } = runs;
    runs.remove = guarded(runs.remove);
    runs.swap = (next, base, signal) => (base ? swap : guarded(swap))(next, base, signal);
    entries.patch = guarded(entries.patch);
  }

  /** It crashes, and somebody takes over; sometimes before it knows that it has lost the lease. */
  async #takeOver(): Promise<void> {
    if (this.ships.length < 2 && this.random() < 0.5) this.#start();
    else {
      await this.ships.shift()?.stop();
      if (this.ships.length === 0) this.#start();
    }
  }

  #tellRemote(ship: MemoryMothership | undefined, key: ComponentKey): void {
    const entry = ship?.stores.entries.find(key.entryUid);
    if (!ship || !entry || entry.deleting) return;
    this.seen.remotes += 1;
    this.#factsOf(key).remote = { at: this.clock.monotonic(), ship };
    ship.remote.event({ ...key, about: 'services' });
  }

  /** A component's own write, past the fence. */
  #patch(content: EntryContent | undefined, { run, auth }: ReconcileRequest): Reply {
    const key = readRunId(run.id);
    const entry = key && this.#entryOf(key.entryUid);
    const { vnet } = (content?.status.outputs['network'] ?? {}) as { vnet?: string };
    if (vnet === undefined) return notReady('/status/outputs/network/vnet');
    if (!key || !entry) return answer({ outcome: 'Retry' });
    const record = this.inventory.record(key)?.record;
    const who = { ...key, credentialId: auth.token.replace('token ', '') };
    if (this.#chance(0.05) || fenceViolation(record && fenced(record), who, this.clock.now())) {
      this.seen.refused += 1;
      return answer({ outcome: 'Retry', message: 'forbidden' });
    }
    this.#hold(record?.seq === run.seq, 'I1, I5: only the last run may write', run.id);
    this.inventory.edit(entry.ref, (object) => {
      object.status = { ...object.status, outputs: { ...object.status?.outputs, patcher: { of: vnet } } };
    });
    return done();
  }

  #entryOf(uid: string): Entry | undefined {
    return this.#names.map((name) => this.inventory.entry({ name })).find((entry) => entry?.ref.uid === uid);
  }

  async #call(
    ship: MemoryMothership,
    work: (content: EntryContent | undefined, request: ReconcileRequest) => Reply,
    request: ReconcileRequest,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { id } = request.run;
    const key = readRunId(id);
    if (!key) throw new Error(id);
    const token = request.auth.token.replace('token ', '');
    this.#checkCall(ship, key, request, token);
    const facts = this.#factsOf(key);
    facts.started = this.ships.length === 1 ? this.#started : 0;
    facts.calledAt = this.clock.monotonic();
    const on = `${this.#nameOfShip.get(ship)} ${key.component}`;
    const calls = (this.#on.get(on) ?? 0) + 1;
    this.#hold(
      calls <= mostAtOnce || !this.#leads(ship),
      'I13: a component has no more calls than it wants',
      `${calls} with ${id}`,
    );
    this.#on.set(on, calls);
    try {
      return await this.#answer(ship, key, work, request, signal);
    } finally {
      this.#on.set(on, (this.#on.get(on) ?? 0) - 1);
    }
  }

  async #answer(
    ship: MemoryMothership,
    key: NonNullable<ReturnType<typeof readRunId>>,
    work: (content: EntryContent | undefined, request: ReconcileRequest) => Reply,
    request: ReconcileRequest,
    signal: AbortSignal,
  ): Promise<Reply> {
    if (this.#chance(0.1)) return { kind: 'notAccepted', code: 'Busy', message: '' };
    await sleep(this.clock, this.#calm ? 20 : this.random() * (this.#chance(0.1) ? hangsMs : 2000), signal);
    if (this.#chance(0.1)) return answer({ outcome: 'Retry' });
    if (this.#chance(0.1)) return { kind: 'broken', code: 'Timeout', message: '' };
    if (this.#chance(0.05)) throw new Error('a bug in the client');
    const result =
      request.operation === 'delete'
        ? answer({ outcome: 'Deleted' })
        : work(this.#entryOf(key.entryUid)?.content, request);
    const record = this.inventory.record(key)?.record;
    // Unless nobody waited for it any more.
    if (record?.seq === key.seq && record.phase === 'Running') this.#factsOf(key).endedAt = this.clock.monotonic();
    if (!this.#chance(0.2)) return result;
    void this.#report(ship, key, request.auth.token.replace('token ', ''), result);
    return { kind: 'accepted', leaseMs: this.random() < 0.5 ? undefined : 3000 };
  }

  #checkCall(ship: MemoryMothership, key: ComponentKey, { run, operation }: ReconcileRequest, token: string): void {
    const { id, seq, reasons } = run;
    const record = this.inventory.record(key)?.record;
    const facts = this.#factsOf(key);
    this.seen.calls += 1;
    this.#hold(!this.#called.has(id), 'I9: one call a run', id);
    this.#called.add(id);
    // Whoever is late finds that out by the number.
    const isStored = record ? record.seq >= seq : this.#entryOf(key.entryUid)?.deleting !== false;
    this.#hold(isStored, 'I15: no run without a stored start record', id);
    const isOn = record?.seq === seq && record.phase === 'Running' && record.credentialId !== undefined;
    this.#hold(!isOn || record.credentialId === token, 'I9: its token is of that run', id);
    const isOfDeleted = ship.stores.entries.find(key.entryUid)?.deleting === true;
    this.#hold(operation === 'delete' || !isOfDeleted, 'I18: reconcile never starts after deletionTimestamp', id);
    // What waits for an input is looked at a fifth sooner.
    const isEarly = this.clock.monotonic() - facts.endedAt < intervalMs * 0.8 - 1;
    // Of two motherships one may take over what the other has stored as due.
    const isAlone = this.ships.length === 1 && facts.started === this.#started && facts.endedAt > facts.calledAt;
    const isByTime = reasons.length === 1 && reasons[0] === 'Interval' && isAlone;
    this.#hold(!(isByTime && isEarly), 'I22: no clock hastens an interval', id);
  }

  #hold(isSo: boolean, invariant: string, about: string): void {
    if (!isSo) this.#problem ??= `${invariant}: ${about}`;
  }

  #factsOf(key: ComponentKey): KeyFacts {
    const text = keyText(key);
    let facts = this.#keys.get(text);
    if (!facts) {
      facts = { started: 0, endedAt: 0, calledAt: -1, remote: undefined };
      this.#keys.set(text, facts);
    }
    return facts;
  }

  /** Late, twice, or never; to whoever leads then. */
  async #report(first: MemoryMothership, run: NonNullable<ReturnType<typeof readRunId>>, token: string, result: Reply) {
    if (result.kind !== 'outcome' || this.#chance(0.2)) return;
    const id = `${run.entryUid}.${run.component}.${run.seq}`;
    const body = { run: id, ...result.outcome };
    for (let i = 0; i < 2; i += 1) {
      await sleep(this.clock, this.random() * 6000);
      const ship = this.ships.at(-1) ?? first;
      const early = await ship.mothership.reports.report(run, 'forged', body);
      this.#hold(early.status !== 200, 'I5: no report by a forged credential is taken', id);
      const said = await ship.mothership.reports.report(run, token, body);
      if (said.status !== 200) continue;
      const late = await ship.mothership.reports.report(run, 'forged', body);
      this.#hold(late.status !== 200, 'I5: no report by a forged credential is taken', id);
    }
  }
}

import { KeyedQueue } from '../../../src/engine/queue.ts';
import { allHold } from '../../../src/inventory/core/digest.ts';
import type { StoredRecord } from '../../../src/inventory/core/run-record.ts';
import { type Lane, lanes, type TriggerReason, trigger } from '../../../src/inventory/core/triggers.ts';
import { keyText } from '../../../src/inventory/key.ts';
import { Breakers } from '../../../src/inventory/mothership/breakers.ts';
import { Limits } from '../../../src/inventory/mothership/limits.ts';
import { Look } from '../../../src/inventory/mothership/look.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { type KnownContent, knownDigest } from './known-digests.ts';
import type { LoopHost } from './loop-host.ts';
import type { SimEntry } from './simulated-entry.ts';
import { SimulatedLoop } from './simulated-loop.ts';
import { SimulatedProcess } from './simulated-process.ts';
import type { SimComponent, SimulatedWorld } from './simulated-world.ts';
import { TurnChecks } from './turn-checks.ts';

/**
 * One process of the inventory half: watches, and for each key `step` and what follows from it. Queue, limits, breakers and what is
 * looked up in an entry are the real ones; what has promises in it is simulated.
 */
export class SimulatedMothership extends SimulatedProcess implements LoopHost {
  readonly world: SimulatedWorld;
  readonly loops = new Map<string, SimulatedLoop>();
  /** As far as its watches have got. */
  readonly seen = new Map<string, SimEntry>();
  readonly registrations = new Map<string, Registration>();
  readonly records = new Map<string, StoredRecord>();
  readonly look: Look;
  readonly turns: TurnChecks;
  readonly limits: Limits;
  leads = false;
  isGuarded = false;
  readonly #breakers: Breakers;
  readonly #queue: KeyedQueue;
  readonly #unwatch: () => void;
  /** What it has seen go. A watch never tells of it again: what comes late is dropped. */
  readonly #gone = new Set<string>();
  #isPumping = false;
  #told = 0;

  constructor(world: SimulatedWorld, skewMs: number) {
    super(world.time, skewMs);
    this.world = world;
    const registry = {
      get: (name: string) => this.registrations.get(name),
      all: () => this.registrations.values(),
      refusal: () => undefined,
    };
    this.turns = new TurnChecks(this);
    this.#breakers = new Breakers({
      clock: this.clock,
      onChange: (component, how) => this.limits.componentChanged(component, how),
      onState: () => undefined,
    });
    this.limits = new Limits({
      registry,
      open: () => true,
      prepared: () => true,
      reachable: (component) => this.#breakers.admit(component),
      laneOf: (key) => this.loops.get(key)?.lane,
      poke: (keys) => this.#queue.poke(keys),
    });
    this.#queue = new KeyedQueue(this.clock, () => this.#pump(), {
      lanes: Object.keys(lanes).length,
      admit: (key) => this.limits.admit(key),
      random: world.random,
    });
    this.look = new Look({
      entries: { find: (uid) => this.seen.get(uid) },
      runs: { find: (key) => this.records.get(keyText(key)) },
      registry,
      digestInputs: (content, registration, force) => knownDigest(content as KnownContent, registration, force),
      allHold,
    });
    const onEntry = (uid: string, entry: SimEntry | undefined): void => {
      if (world.isLossy && world.fault(0.1)) return;
      const copies = world.fault(0.05) ? 2 : 1;
      for (let i = 0; i < copies; i += 1)
        this.later(world.between(0, world.faulty ? 200 : 5), () => this.#see(uid, entry));
    };
    const onRecord = (key: string, stored: StoredRecord | undefined): void => {
      if (world.isLossy && world.fault(0.1)) return;
      this.later(this.#lag(), () => this.#seeRecord(key, stored));
    };
    const onRegistration = (registration: Registration): void => {
      if (world.isLossy && world.fault(0.1)) return;
      this.later(this.#lag(), () => this.#seeRegistration(registration));
    };
    world.watchers.add(onEntry);
    world.recordWatchers.add(onRecord);
    world.registrationWatchers.add(onRegistration);
    this.#unwatch = () => {
      world.watchers.delete(onEntry);
      world.recordWatchers.delete(onRecord);
      world.registrationWatchers.delete(onRegistration);
    };
  }

  /** Takes the lead: reads everything, looks at every key. */
  lead(): void {
    const { registrations, records, entries } = this.world;
    this.leads = true;
    for (const [name, registration] of registrations) this.registrations.set(name, registration);
    for (const [key, stored] of records) this.records.set(key, stored);
    for (const [uid, entry] of entries) this.seen.set(uid, entry);
    for (const entry of this.seen.values()) this.#lookAt(entry, true);
    this.#relistLater();
  }

  /** The process is gone, or does not lead any more: whatever it knew is lost. What it has sent is on its way. */
  override stop(): void {
    super.stop();
    this.leads = false;
    this.#unwatch();
    this.loops.clear();
  }

  override pause(): void {
    super.pause();
    // It has not renewed its lease, and looks at that before it writes what no compare-and-swap guards.
    this.isGuarded = true;
  }

  loop(uid: string, component: SimComponent): SimulatedLoop {
    const key = keyText({ entryUid: uid, component: component.name });
    let loop = this.loops.get(key);
    if (!loop) {
      loop = new SimulatedLoop(this, key, uid, component);
      this.loops.set(key, loop);
    }
    return loop;
  }

  registration(component: SimComponent): Registration {
    return this.registrations.get(component.name) ?? component.registration;
  }

  digest(entry: SimEntry, component: SimComponent): string {
    return knownDigest(entry.content, this.registration(component), entry.facts.force[component.name]).digest;
  }

  /** An event in the managed cluster. */
  remote(uid: string, component: SimComponent): void {
    if (!this.leads || !this.seen.has(uid)) return;
    const loop = this.loop(uid, component);
    loop.push((inputs) => {
      loop.remoteAt = this.world.happened();
      return { kind: 'trigger', trigger: trigger('Remote'), inputs };
    });
  }

  trigger(uid: string, component: SimComponent, reason: TriggerReason, delayMs?: number): void {
    if (!this.leads) return;
    const told = trigger(reason, { atMs: delayMs === undefined ? undefined : this.clock.now() + delayMs });
    this.loop(uid, component).push((inputs) => ({ kind: 'trigger', trigger: told, inputs }));
  }

  enqueue(key: string, delayMs: number, lane: Lane, reason: string): void {
    this.turns.asked(key, delayMs, lane);
    this.#queue.addAfter(key, reason, delayMs, lane);
  }

  /** A key has had its turn. */
  turnOver(key: string): void {
    this.#queue.done(key);
  }

  endpoint(component: string, verdict: 'answered' | 'failed', retryAfterMs: number | undefined): void {
    this.#breakers.tell(component, verdict, retryAfterMs);
  }

  /** Its endpoint was down when it was last heard of. */
  isProbed(component: string): boolean {
    return this.#breakers.isOpen(component);
  }

  wrote(key: string, stored: StoredRecord): void {
    if (isLater(stored, this.records.get(key))) this.records.set(key, stored);
  }

  /** The finalizer goes when nothing is left. */
  finalize(uid: string): void {
    if (!this.seen.get(uid)?.deleting) return;
    for (const component of this.world.components.values()) {
      const loop = this.loop(uid, component);
      if (loop.state.phase === 'starting' || this.world.records.has(loop.key)) return;
    }
    this.world.removeEntry(uid);
  }

  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    for (let work = this.#queue.take(); work; work = this.#queue.take()) {
      const { key, lane } = work;
      this.turns.taken(key, lane);
      const loop = this.loops.get(key);
      if (loop) {
        loop.turn();
      } else {
        this.limits.release(key);
        this.#queue.done(key);
      }
    }
    this.#isPumping = false;
  }

  /** Milliseconds until its watch tells: late, but in order. */
  #lag(): number {
    const { world } = this;
    this.#told = Math.max(this.#told, world.time.now + world.between(0, world.faulty ? 200 : 5));
    return this.#told - world.time.now;
  }

  #see(uid: string, entry: SimEntry | undefined): void {
    if (!this.leads || this.#gone.has(uid)) return;
    if (!entry) {
      this.#gone.add(uid);
      this.seen.delete(uid);
      for (const loop of this.loops.values()) if (loop.uid === uid) loop.push(() => ({ kind: 'gone' }));
      return;
    }
    const before = this.seen.get(uid);
    if (before && before.version > entry.version) return;
    this.seen.set(uid, entry);
    this.#lookAt(entry, false, before);
  }

  #seeRegistration(registration: Registration): void {
    const { name, generation } = registration;
    const component = this.world.components.get(name);
    if (!this.leads || !component || (this.registrations.get(name)?.generation ?? 0) >= generation) return;
    this.registrations.set(name, registration);
    for (const uid of this.seen.keys()) {
      this.trigger(uid, component, 'RegistrationChanged', this.world.random() * 30 * this.seen.size);
    }
  }

  #seeRecord(key: string, stored: StoredRecord | undefined): void {
    if (!this.leads) return;
    if (stored) this.wrote(key, stored);
    else if (!this.world.records.has(key) && this.records.delete(key)) this.#readerGone(key);
    this.loops.get(key)?.push((inputs, _entry, { state }) => {
      const known = state.stored;
      if (stored && !isLater(stored, known)) return undefined;
      // What was deleted and is known to be gone, or is there again.
      if (!stored && this.world.records.has(key)) return undefined;
      if (!stored && !known) return undefined;
      return { kind: 'found', stored, inputs };
    });
  }

  /** Whoever waits until nobody reads its outputs any more may go on. */
  #readerGone(key: string): void {
    const uid = this.loops.get(key)?.uid;
    for (const loop of this.loops.values())
      if (loop.uid === uid) this.trigger(loop.uid, loop.component, 'InputArrived');
  }

  /** `before`: what is the same for a component is not told to it. */
  #lookAt(entry: SimEntry, isFirst: boolean, before?: SimEntry): void {
    const { uid } = entry.ref;
    for (const component of this.world.components.values()) {
      const loop = this.loop(uid, component);
      if (isFirst || !loop.known) {
        loop.known = true;
        const stored = this.world.records.get(loop.key);
        loop.push((inputs) => ({ kind: 'found', stored, inputs }));
      } else if (before && this.#isSame(entry, before, loop)) continue;
      if (entry.deleting) loop.push((inputs) => ({ kind: 'deleting', inputs }));
      else this.trigger(uid, component, isForced(entry, before, component) ? 'Forced' : 'InputChanged');
    }
    this.finalize(uid);
  }

  #isSame(entry: SimEntry, before: SimEntry, { state, component }: SimulatedLoop): boolean {
    const [now, then] = [entry.facts, before.facts];
    return (
      now.deleting === then.deleting &&
      now.suspended === then.suspended &&
      now.disabled === then.disabled &&
      now.abandoned === then.abandoned &&
      now.bytes === then.bytes &&
      state.stored?.record.lastOutcome?.outcome !== 'NotReady' &&
      this.digest(entry, component) === this.digest(before, component)
    );
  }

  #relistLater(): void {
    const { world } = this;
    this.later(world.faulty ? relistMs : 30 * relistMs, () => {
      if (!this.leads) return;
      for (const registration of world.registrations.values()) this.#seeRegistration(registration);
      for (const uid of [...this.seen.keys()]) if (!world.entries.has(uid)) this.#see(uid, undefined);
      for (const [uid, entry] of world.entries) {
        this.seen.set(uid, entry);
        this.#lookAt(entry, false);
        for (const component of world.components.values()) {
          const { key } = this.loop(uid, component);
          this.#seeRecord(key, world.records.get(key));
        }
      }
      this.#relistLater();
    });
  }
}

export const relistMs = 60_000;

const isLater = (stored: StoredRecord, known: StoredRecord | undefined): boolean =>
  known === undefined || Number(stored.resourceVersion) > Number(known.resourceVersion);

const isForced = (entry: SimEntry, before: SimEntry | undefined, { name }: SimComponent): boolean =>
  before !== undefined && entry.facts.force[name] !== before.facts.force[name];

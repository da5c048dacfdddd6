import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import { afterCall, type Breaker, closedBreaker, mayCall, probed } from '../../../src/inventory/core/breaker.ts';
import { type Lane, type TriggerReason, trigger } from '../../../src/inventory/core/lanes.ts';
import { allHold } from '../../../src/inventory/core/predicates.ts';
import type { StoredRecord } from '../../../src/inventory/core/run-record.ts';
import { type Effect, freshKey, type Inputs, type KeyEvent, type KeyState } from '../../../src/inventory/core/step.ts';
import { step } from '../../../src/inventory/core/steps/step.ts';
import { keyText } from '../../../src/inventory/key.ts';
import { callComponent } from './simulated-component.ts';
import { hold, type SimComponent, type SimEntry, type SimulatedWorld } from './simulated-world.ts';

interface Waiting {
  dueAt: number;
  lane: Lane;
}

type EventOf = (inputs: Inputs, entry: SimEntry) => KeyEvent | undefined;

/** One process of the inventory half: watches, a queue with limits, and for each key `step` and what follows from it. */
export class SimulatedMothership {
  readonly world: SimulatedWorld;
  readonly loops = new Map<string, Loop>();
  /** As far as its watch has got. */
  readonly seen = new Map<string, SimEntry>();
  /** Whether nothing is under way. */
  get isAtRest(): boolean {
    return [...this.loops.values()].every(({ isAtRest }) => isAtRest);
  }

  /** Its wall clock against the time of the world. */
  skewMs: number;
  leads = false;
  paused = false;
  isGuarded = false;
  stopped = false;
  readonly #frozen: (() => void)[] = [];
  /** What it has seen go. A watch never tells of it again: what comes late is dropped. */
  readonly #gone = new Set<string>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #held = new Map<string, string>();
  readonly #breakers = new Map<string, Breaker>();
  readonly #unwatch: () => void;
  #told = 0;

  constructor(world: SimulatedWorld, skewMs: number) {
    this.world = world;
    this.skewMs = skewMs;
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
    world.watchers.add(onEntry);
    world.recordWatchers.add(onRecord);
    this.#unwatch = () => {
      world.watchers.delete(onEntry);
      world.recordWatchers.delete(onRecord);
    };
  }

  /** Milliseconds until its watch tells: late, but in order. */
  #lag(): number {
    const { world } = this;
    this.#told = Math.max(this.#told, world.time.now + world.between(0, world.faulty ? 200 : 5));
    return this.#told - world.time.now;
  }

  /** Takes the lead: reads everything, looks at every key. */
  lead(): void {
    this.leads = true;
    for (const [uid, entry] of this.world.entries) this.seen.set(uid, entry);
    for (const entry of this.seen.values()) this.#lookAt(entry, true);
    this.#relistLater();
  }

  /** The process is gone, or does not lead any more: whatever it knew is lost. What it has sent is on its way. */
  stop(): void {
    this.stopped = true;
    this.leads = false;
    this.#unwatch();
    this.loops.clear();
  }

  pause(): void {
    this.paused = true;
    // It has not renewed its lease, and looks at that before it writes what no compare-and-swap guards.
    this.isGuarded = true;
  }

  resume(): void {
    this.paused = false;
    for (const act of this.#frozen.splice(0)) this.#run(act);
  }

  /** Something that this process does or is told then. */
  later(delayMs: number, act: () => void): void {
    this.world.time.after(delayMs, () => this.#run(act));
  }

  loop(uid: string, component: SimComponent): Loop {
    const key = keyText({ entryUid: uid, component: component.registration.name });
    let loop = this.loops.get(key);
    if (!loop) {
      loop = new Loop(this, key, uid, component);
      this.loops.set(key, loop);
    }
    return loop;
  }

  remote(uid: string, component: SimComponent): void {
    this.trigger(uid, component, 'Remote');
  }

  enqueue(key: string, delayMs: number, lane: Lane): void {
    const dueAt = this.world.time.now + delayMs;
    const waiting = this.#waiting.get(key);
    if (waiting) {
      waiting.dueAt = Math.min(waiting.dueAt, dueAt);
      if (lane < waiting.lane) waiting.lane = lane;
    } else {
      this.#waiting.set(key, { dueAt, lane });
    }
    this.later(delayMs, () => this.pump());
  }

  /** Hands out what is due and may run, the most urgent lane first. */
  pump(): void {
    const { now } = this.world.time;
    for (const lane of [0, 1, 2]) {
      for (const [key, waiting] of this.#waiting) {
        const loop = this.loops.get(key);
        if (!loop || waiting.lane !== lane || waiting.dueAt > now || loop.inTurn || !this.#admit(loop)) continue;
        this.#waiting.delete(key);
        loop.turn();
      }
    }
  }

  release(key: string): void {
    if (this.#held.delete(key)) this.pump();
  }

  holdSlot(loop: Loop): void {
    this.#held.set(loop.key, loop.component.registration.name);
  }

  endpoint(component: string, verdict: 'answered' | 'failed', retryAfterMs: number | undefined): void {
    const breaker = this.#breakers.get(component) ?? closedBreaker;
    const next = afterCall(breaker, verdict, this.world.time.now, retryAfterMs);
    this.#breakers.set(component, next);
    if (next.state === 'open') this.later(next.probeAt - this.world.time.now, () => this.pump());
    else if (breaker.state === 'open') this.pump();
  }

  #admit({ key, component }: Loop): boolean {
    if (this.#held.has(key)) return true;
    const { name, maxConcurrent } = component.registration;
    let running = 0;
    for (const holder of this.#held.values()) if (holder === name) running += 1;
    if (running >= maxConcurrent) return false;
    const breaker = this.#breakers.get(name) ?? closedBreaker;
    const { now } = this.world.time;
    if (!mayCall(breaker, now)) return false;
    if (breaker.state === 'open') {
      const next = probed(breaker, now);
      this.#breakers.set(name, next);
      if (next.state === 'open') this.later(next.probeAt - now, () => this.pump());
    }
    this.#held.set(key, name);
    return true;
  }

  #run(act: () => void): void {
    if (this.stopped) return;
    if (this.paused) this.#frozen.push(act);
    else act();
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

  #seeRecord(key: string, stored: StoredRecord | undefined): void {
    const loop = this.leads ? this.loops.get(key) : undefined;
    if (!loop) return;
    loop.push((inputs) => {
      const known = loop.state.stored;
      if (stored && known && Number(stored.resourceVersion) <= Number(known.resourceVersion)) return undefined;
      // What was deleted and is known to be gone, or is there again.
      if (!stored && this.world.records.has(key)) return undefined;
      if (!stored && !known) return undefined;
      return { kind: 'found', stored, inputs };
    });
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
      else this.trigger(uid, component, 'InputChanged');
    }
    this.finalize(uid);
  }

  #isSame(entry: SimEntry, before: SimEntry, { state, component }: Loop): boolean {
    return (
      entry.deleting === before.deleting &&
      entry.suspended === before.suspended &&
      state.stored?.record.lastOutcome?.outcome !== 'NotReady' &&
      this.world.digest(entry, component) === this.world.digest(before, component)
    );
  }

  trigger(uid: string, component: SimComponent, reason: TriggerReason): void {
    if (!this.leads) return;
    const told = trigger(reason);
    this.loop(uid, component).push((inputs) => ({ kind: 'trigger', trigger: told, inputs }));
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

  #relistLater(): void {
    this.later(this.world.faulty ? relistMs : 30 * relistMs, () => {
      if (!this.leads) return;
      for (const uid of [...this.seen.keys()]) if (!this.world.entries.has(uid)) this.#see(uid, undefined);
      for (const [uid, entry] of this.world.entries) {
        this.seen.set(uid, entry);
        this.#lookAt(entry, false);
        for (const component of this.world.components.values()) {
          const { key } = this.loop(uid, component);
          this.#seeRecord(key, this.world.records.get(key));
        }
      }
      this.#relistLater();
    });
  }
}

export const relistMs = 60_000;

/** A key in a mothership: one event after the other, each with all that follows from it. */
export class Loop {
  readonly key: string;
  readonly uid: string;
  readonly component: SimComponent;
  readonly #mothership: SimulatedMothership;
  state: KeyState = freshKey;
  known = false;
  inTurn = false;
  #calling = 0;
  #busy = false;
  #credential = '';
  #entryAtStart: SimEntry | undefined;
  #startFailures = 0;
  /** Until when the run may be silent, by what was granted. */
  #granted: { readonly seq: number; readonly until: number } | undefined;
  readonly #tasks: EventOf[] = [];
  warnings = 0;

  constructor(mothership: SimulatedMothership, key: string, uid: string, component: SimComponent) {
    this.#mothership = mothership;
    this.key = key;
    this.uid = uid;
    this.component = component;
  }

  get isAtRest(): boolean {
    return !this.#busy && !this.inTurn && !isAtWork(this.state) && this.state.phase !== 'queued';
  }

  turn(): void {
    this.inTurn = true;
    this.push((inputs) => ({ kind: 'slot', inputs }));
  }

  push(task: EventOf): void {
    this.#tasks.push(task);
    if (!this.#busy) this.#next();
  }

  outcomeOf(seq: number, outcome: Outcome): EventOf {
    return (inputs, entry) => {
      const missing = outcome.outcome === 'NotReady' ? outcome.missing : undefined;
      const start = this.#entryAtStart;
      return {
        kind: 'outcome',
        seq,
        outcome,
        inputs,
        ...(missing && {
          missing: {
            heldAtStart: start !== undefined && allHold(missing, start.content, []),
            holdsNow: allHold(missing, entry.content, []),
          },
        }),
      };
    };
  }

  #next(): void {
    this.#busy = true;
    for (let task = this.#tasks.shift(); task; task = this.#tasks.shift()) {
      if (this.#take(task) === 'waits') return;
    }
    this.#rest();
  }

  #rest(): void {
    this.#busy = false;
    if (this.inTurn && this.#calling === 0) {
      this.inTurn = false;
      if (!isAtWork(this.state)) this.#mothership.release(this.key);
      this.#mothership.pump();
    } else if (!this.inTurn && !isAtWork(this.state)) {
      this.#mothership.release(this.key);
    }
    this.#mothership.finalize(this.uid);
  }

  /** 'waits': it goes on by itself, and with the next task afterwards. */
  #take(eventOf: EventOf): 'done' | 'waits' {
    const mothership = this.#mothership;
    const { world } = mothership;
    const entry = mothership.seen.get(this.uid);
    if (!entry && !this.known) return 'done';
    const event = entry ? eventOf(this.#inputs(entry), entry) : ({ kind: 'gone' } as const);
    if (!event) return 'done';
    const before = this.state;
    const { state, effects } = step(before, event, {
      nowMs: epochMs + world.time.now + mothership.skewMs,
      monotonicMs: world.time.now,
      random: world.random,
      entry: entry?.ref ?? { namespace: 'inv', name: 'gone', uid: this.uid },
      registration: this.component.registration,
    });
    this.state = state;
    this.#check(before, event, effects, entry);
    if (isAtWork(state)) mothership.holdSlot(this);
    return this.#carryOut(effects, 0, []);
  }

  #inputs(entry: SimEntry): Inputs {
    const { world } = this.#mothership;
    const record = this.state.stored?.record;
    const missing = record?.lastOutcome?.missing ?? [];
    return {
      digest: world.digest(entry, this.component),
      parts: noParts,
      resourceVersion: String(entry.version),
      arrived: missing.length > 0 && allHold(missing, entry.content, []),
      mayRun: entry.suspended
        ? { may: 'no', why: 'Suspended' }
        : entry.deleting
          ? record
            ? { may: 'delete' }
            : { may: 'no', why: 'NotApplicable' }
          : { may: 'reconcile' },
    };
  }

  #carryOut(effects: readonly Effect[], from: number, answers: EventOf[]): 'done' | 'waits' {
    for (let index = from; index < effects.length; index += 1) {
      const effect = effects[index];
      if (!effect) break;
      const isSlow = this.#do(effect, answers, (endsBatch) => {
        const rest = endsBatch ? [] : effects.slice(index + 1);
        if (this.#carryOut(rest, 0, answers) === 'done') this.#next();
      });
      if (isSlow) return 'waits';
    }
    this.#tasks.unshift(...answers);
    return 'done';
  }

  /** True: it takes its time and calls back. */
  #do(effect: Effect, answers: EventOf[], goOn: (endsBatch: boolean) => void): boolean {
    const mothership = this.#mothership;
    switch (effect.kind) {
      case 'enqueue': {
        const backoffMs = this.#startFailures > 0 ? 100 * 2 ** Math.min(8, this.#startFailures) : 0;
        mothership.enqueue(this.key, Math.max(effect.delayMs, backoffMs), effect.lane);
        return false;
      }
      case 'call':
        this.#call();
        return false;
      case 'endpoint':
        mothership.endpoint(this.component.registration.name, effect.verdict, effect.retryAfterMs);
        return false;
      case 'warn':
        this.warnings += effect.code === 'Livelock' ? 1 : 0;
        return false;
      case 'tell':
        return false;
      case 'start':
        this.#start(effect, answers, goOn);
        return true;
      case 'store':
        this.#store(effect, answers, goOn);
        return true;
      case 'apply':
        this.#apply(effect, answers, goOn);
        return true;
      case 'retire':
        this.#retire(effect, answers, goOn);
        return true;
    }
  }

  /** A request to the API server: `act` happens there, or not, and `then` is told, or that it failed. */
  #request<T>(act: () => T, then: (answer: T | undefined) => void, isUnfenced = false): void {
    const mothership = this.#mothership;
    const { world } = mothership;
    if (mothership.isGuarded && isUnfenced) {
      mothership.later(100, () => then(undefined));
      return;
    }
    const outMs = world.between(1, world.faulty ? 30 : 3);
    const backMs = world.between(1, world.faulty ? 30 : 3);
    if (world.fault(0.03)) {
      mothership.later(outMs + backMs, () => then(undefined));
      return;
    }
    world.time.after(outMs, () => {
      const answer = act();
      const isLost = world.fault(0.03);
      mothership.later(backMs, () => then(isLost ? undefined : answer));
    });
  }

  #start({ next, base }: Extract<Effect, { kind: 'start' }>, answers: EventOf[], goOn: (ends: boolean) => void): void {
    const { world, seen } = this.#mothership;
    this.#entryAtStart = seen.get(this.uid);
    const credential = world.issue(this.key, next.seq);
    this.#request(
      () => world.swap(this.key, { ...next, credentialId: credential }, base),
      (swap) => {
        if (swap?.kind === 'stored') {
          this.#startFailures = 0;
          this.#credential = credential;
          answers.push((inputs) => ({ kind: 'started', stored: swap.stored, inputs }));
        } else {
          this.#startFailures += swap ? 0 : 1;
          const stored = swap ? swap.stored : base;
          answers.push((inputs) => ({ kind: 'conflict', stored, inputs }));
        }
        goOn(true);
      },
      // Nothing is there to be compared with.
      base === undefined,
    );
  }

  #store(effect: Extract<Effect, { kind: 'store' }>, answers: EventOf[], goOn: (ends: boolean) => void): void {
    const { world } = this.#mothership;
    this.#request(
      () => world.swap(this.key, effect.next, effect.base),
      (swap) => {
        if (!swap) {
          this.#mothership.later(100, () => this.#store(effect, answers, goOn));
          return;
        }
        if (swap.kind === 'stored') this.state = { ...this.state, stored: swap.stored };
        else answers.push((inputs) => ({ kind: 'conflict', stored: swap.stored, inputs }));
        goOn(swap.kind === 'conflict');
      },
    );
  }

  #apply(effect: Extract<Effect, { kind: 'apply' }>, answers: EventOf[], goOn: (ends: boolean) => void): void {
    const { world } = this.#mothership;
    const { name } = this.component.registration;
    this.#request(
      () => {
        const patch = effect.outputs[name] as { readonly value: number };
        world.publish(this.uid, name, patch.value);
        return true;
      },
      (done) => {
        if (!done) {
          this.#mothership.later(100, () => this.#apply(effect, answers, goOn));
          return;
        }
        answers.push((inputs) => ({ kind: 'applied', refusal: undefined, inputs }));
        goOn(false);
      },
      true,
    );
  }

  #retire(effect: Extract<Effect, { kind: 'retire' }>, answers: EventOf[], goOn: (ends: boolean) => void): void {
    const { world } = this.#mothership;
    const { name } = this.component.registration;
    this.#request(
      () => {
        world.withdraw(this.uid, name);
        return world.remove(this.key, effect.base);
      },
      (done) => {
        if (!done) {
          this.#mothership.later(100, () => this.#retire(effect, answers, goOn));
          return;
        }
        const stored = world.records.get(this.key);
        if (done === 'conflict') answers.push((inputs) => ({ kind: 'conflict', stored, inputs }));
        goOn(false);
      },
      true,
    );
  }

  #call(): void {
    const mothership = this.#mothership;
    const { world } = mothership;
    const record = this.state.stored?.record;
    if (!record) return;
    const { seq } = record;
    hold(
      record.operation === 'delete' || !mothership.seen.get(this.uid)?.deleting,
      'I18: reconcile never starts after deletionTimestamp',
      () => `${this.key}#${seq}`,
    );
    world.dispatch(this.key, record, this.#credential);
    this.#calling += 1;
    let isOver = false;
    const over = (event: EventOf): void => {
      if (isOver) return;
      isOver = true;
      // The turn lasts as long as the call.
      this.#calling -= 1;
      this.push(event);
    };
    callComponent(
      world,
      {
        key: this.key,
        uid: this.uid,
        seq,
        operation: record.operation,
        credential: this.#credential,
        component: this.component,
      },
      {
        outcome: (outcome) => mothership.later(1, () => over(this.outcomeOf(seq, outcome))),
        accepted: (leaseMs) =>
          mothership.later(1, () => {
            over(() => {
              if (this.state.stored?.record.seq !== seq) return undefined;
              this.#granted = { seq, until: world.time.now + leaseMs };
              return { kind: 'accepted', leaseMs };
            });
          }),
        notAccepted: (retryAfterMs) =>
          mothership.later(1, () =>
            over((inputs) =>
              this.state.stored?.record.seq === seq ? { kind: 'notAccepted', retryAfterMs, inputs } : undefined,
            ),
          ),
        broken: (code) => mothership.later(1, () => over(this.#broken(seq, code))),
      },
    );
    mothership.later(this.component.registration.timeoutMs, () => over(this.#broken(seq, 'Timeout')));
  }

  /** A report from outside; the sink checks the run and the credential. */
  report(seq: number, credential: string, what: { outcome: Outcome } | { leaseMs: number }): boolean {
    const record = this.state.stored?.record;
    const isLive =
      record?.seq === seq && (record.credentialId === credential || record.previousCredential?.id === credential);
    if (!isLive) return false;
    if ('outcome' in what) {
      this.push(this.outcomeOf(seq, what.outcome));
      return true;
    }
    const { world } = this.#mothership;
    // The component goes on with the one that it has, which is good as the previous one.
    const isRefresh = record.previousCredential === undefined && world.chance(0.3);
    const refreshed = isRefresh ? { id: world.issue(this.key, seq), expiresAtMs: 0 } : undefined;
    this.push(() => {
      if (this.state.stored?.record.seq !== seq) return undefined;
      this.#granted = { seq, until: world.time.now + what.leaseMs };
      return { kind: 'heartbeat', leaseMs: what.leaseMs, credential: refreshed };
    });
    return true;
  }

  #broken(seq: number, code: string): EventOf {
    return (inputs) =>
      this.state.stored?.record.seq === seq ? { kind: 'broken', code, message: code, inputs } : undefined;
  }

  #check(before: KeyState, event: KeyEvent, effects: readonly Effect[], entry: SimEntry | undefined): void {
    const { world } = this.#mothership;
    const { state } = this;
    this.#event = { before, event };
    this.#hold(fits(state), 'a state and its record fit');
    let first = 0;
    while (effects[first]?.kind === 'endpoint') first += 1;
    for (const [index, effect] of effects.entries()) {
      if (effect.kind === 'store') this.#hold(index === first, 'the record is written before anything follows from it');
      if (effect.kind === 'call') this.#hold(event.kind === 'started', 'I15: a call follows a stored start');
      if (effect.kind === 'start' && entry) this.#checkStart(effect, before, entry);
    }
    if (event.kind === 'notAccepted' && before.stored && state.stored) {
      this.#hold(state.stored.record.attempt === before.stored.record.attempt, 'I12: attempts are unchanged');
    }
    // By the clock of somebody else.
    if (event.kind === 'found' || event.kind === 'conflict') this.#doneAt = undefined;
    const ended = state.stored?.record.lastOutcome;
    if (!ended || ended.seq === before.stored?.record.lastOutcome?.seq) return;
    if (event.kind === 'leaseOver' || event.kind === 'slot') {
      const isEarly = this.#granted?.seq === ended.seq && this.#granted.until > world.time.now + 1;
      this.#hold(!isEarly, 'I22: no run is lost before its lease is over');
    } else if (event.kind === 'outcome' || event.kind === 'applied') {
      this.#doneAt = ended.outcome === 'Done' ? world.time.now : undefined;
    }
  }

  #checkStart({ next }: Extract<Effect, { kind: 'start' }>, before: KeyState, entry: SimEntry): void {
    const { world } = this.#mothership;
    const { now } = world.time;
    this.#hold(next.operation === (entry.deleting ? 'delete' : 'reconcile'), 'I18: what starts is what may');
    this.#hold(next.entry.uid === this.uid, 'I19: a run is of the entry that is there');
    this.#hold(!entry.suspended, 'nothing starts while suspended');
    this.#hold(before.lastStart === undefined || now - before.lastStart >= 200 - 1e-6, 'starts are 200 ms apart');
    this.#hold(next.inputsDigest === world.digest(entry, this.component), 'the digest is of the version seen');
    if (next.reasons.length === 1 && next.reasons[0] === 'Interval' && this.#doneAt !== undefined) {
      const { intervalMs } = this.component.registration;
      this.#hold(now - this.#doneAt >= intervalMs * 0.9 - 1, 'I22: no clock hastens an interval');
    }
    this.#doneAt = undefined;
  }

  #hold(isSo: boolean, invariant: string): void {
    hold(isSo, invariant, () => JSON.stringify([this.key, this.#event, this.state]));
  }

  #event: unknown;
  /** When the last run of this very process ended with Done. */
  #doneAt: number | undefined;
}

const epochMs = Date.UTC(2026, 10, 21, 9);
const noParts = new Map<never, string>();

function isAtWork({ phase, stored }: KeyState): boolean {
  if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
  return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
}

function fits({ phase, stored, pending, doing, outcome }: KeyState): boolean {
  const recorded = stored?.record.phase ?? 'Idle';
  switch (phase) {
    case 'idle':
      return recorded === 'Idle';
    case 'queued':
      return recorded === 'Idle' && pending !== undefined;
    case 'starting':
      return recorded === 'Idle' && doing !== undefined;
    case 'running':
      return recorded !== 'Idle';
    case 'applying':
      return recorded === 'Applying' && outcome !== undefined;
    case 'draining':
      return recorded === 'Running' && stored?.record.credentialId === undefined;
    case 'gone':
      return pending === undefined;
  }
}

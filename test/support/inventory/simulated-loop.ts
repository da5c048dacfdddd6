import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import { type Effect, freshKey, type Inputs, type KeyEvent, type KeyState } from '../../../src/inventory/core/step.ts';
import { step } from '../../../src/inventory/core/steps/step.ts';
import { lanes } from '../../../src/inventory/core/triggers.ts';
import type { Sight } from '../../../src/inventory/mothership/look.ts';
import type { LoopHost } from './loop-host.ts';
import { callComponent } from './simulated-component.ts';
import type { SimComponent } from './simulated-world.ts';
import { StepChecks } from './step-checks.ts';

export type EventOf = (inputs: Inputs, sight: Sight, loop: SimulatedLoop) => KeyEvent | undefined;

type Of<Kind extends Effect['kind']> = Extract<Effect, { readonly kind: Kind }>;
type GoOn = (endsBatch: boolean) => void;

/** A key in a mothership: one event after the other, each with all that follows from it. */
export class SimulatedLoop {
  readonly key: string;
  readonly uid: string;
  readonly component: SimComponent;
  readonly #mothership: LoopHost;
  readonly #checks: StepChecks;
  state: KeyState = freshKey;
  known = false;
  inTurn = false;
  /** How many things had happened when the last remote event was taken. */
  remoteAt: number | undefined;
  warnings = 0;
  #calling = 0;
  #busy = false;
  #credential = '';
  #sightAtStart: Sight | undefined;
  #startFailures = 0;
  /** Of the last run that this process called. */
  #calledSeq = 0;
  readonly #tasks: EventOf[] = [];

  constructor(mothership: LoopHost, key: string, uid: string, component: SimComponent) {
    this.#mothership = mothership;
    this.key = key;
    this.uid = uid;
    this.component = component;
    this.#checks = new StepChecks(mothership, this);
  }

  /** It may hold a slot. */
  get isBusy(): boolean {
    return this.#busy || this.inTurn || isAtWork(this.state);
  }

  get isAtRest(): boolean {
    return !this.isBusy && this.state.phase !== 'queued';
  }

  get isAtWork(): boolean {
    return isAtWork(this.state);
  }

  /** Whether a run is on that was called from here. */
  get hasOwnRun(): boolean {
    return isAtWork(this.state) && this.state.stored?.record.seq === this.#calledSeq;
  }

  /** The lane that it waits in. */
  get lane(): number {
    return this.state.pending?.lane ?? lanes.time;
  }

  /** A call of this process waits for its answer. */
  get isCalling(): boolean {
    return this.#calling > 0;
  }

  get startFailures(): number {
    return this.#startFailures;
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
    return (inputs, sight) => {
      const missing = outcome.outcome === 'NotReady' ? outcome.missing : undefined;
      if (!missing) return { kind: 'outcome', seq, outcome, inputs };
      const { look } = this.#mothership;
      const start = this.#sightAtStart;
      const heldAtStart = start !== undefined && look.holds(start, missing);
      return {
        kind: 'outcome',
        seq,
        outcome,
        inputs,
        missing: { heldAtStart, holdsNow: look.holds(sight, missing) },
      };
    };
  }

  /** A report from outside; the sink checks the run and the credential. Undefined: not taken. */
  report(
    seq: number,
    credential: string,
    what: { outcome: Outcome } | { leaseMs: number },
  ): { readonly credential: string | undefined } | undefined {
    const { world } = this.#mothership;
    const record = this.state.stored?.record;
    if (record?.seq !== seq || record.phase !== 'Running' || world.isExpired(credential)) return undefined;
    if (record.credentialId !== credential && record.previousCredential?.id !== credential) return undefined;
    if ('outcome' in what) {
      this.push(this.outcomeOf(seq, what.outcome));
      return { credential: undefined };
    }
    const isRefresh = world.isOld(record.credentialId) || world.chance(0.1);
    const refreshed = isRefresh ? { id: world.issue(this.key, seq), expiresAtMs: 0 } : undefined;
    this.push(() => {
      if (!this.#isOn(seq)) return undefined;
      this.#checks.granted(seq, what.leaseMs);
      return { kind: 'heartbeat', leaseMs: what.leaseMs, credential: refreshed };
    });
    // The answer may get lost; the token before it is good for a while.
    return { credential: world.fault(0.1) ? undefined : refreshed?.id };
  }

  #next(): void {
    this.#busy = true;
    for (let task = this.#tasks.shift(); task; task = this.#tasks.shift()) {
      if (this.#take(task) === 'waits') return;
    }
    this.#rest();
  }

  #rest(): void {
    const mothership = this.#mothership;
    this.#busy = false;
    this.#checks.rested(this.state);
    if (!isAtWork(this.state) && this.#calling === 0) mothership.limits.release(this.key);
    if (this.inTurn && this.#calling === 0) {
      this.inTurn = false;
      mothership.turnOver(this.key);
    }
    mothership.finalize(this.uid);
  }

  /** 'waits': it goes on by itself, and with the next task afterwards. */
  #take(eventOf: EventOf): 'done' | 'waits' {
    const mothership = this.#mothership;
    const { time, look, clock, world } = mothership;
    const sight = look.sight(this.uid);
    if (!sight && !this.known) return 'done';
    const registration = mothership.registration(this.component);
    const before = this.state;
    const event = sight
      ? eventOf(look.inputs(sight, registration, before.stored), sight, this)
      : ({ kind: 'gone' } as const);
    if (!event) return 'done';
    const { state, effects } = step(before, event, {
      nowMs: clock.now(),
      monotonicMs: time.now,
      random: world.random,
      entry: sight?.entry.ref ?? { namespace: 'inv', name: 'gone', uid: this.uid },
      registration,
    });
    this.state = state;
    this.#checks.stepped(before, event, state, effects);
    if (isAtWork(state)) mothership.limits.hold({ entryUid: this.uid, component: this.component.name });
    return this.#carryOut(effects, 0, []);
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
  #do(effect: Effect, answers: EventOf[], goOn: GoOn): boolean {
    const mothership = this.#mothership;
    switch (effect.kind) {
      case 'enqueue': {
        // Before it is in the queue again, where others may have waited longer.
        if (!this.inTurn && !this.isAtWork) mothership.limits.release(this.key);
        const backoffMs = this.#startFailures > 0 ? 100 * 2 ** Math.min(8, this.#startFailures) : 0;
        mothership.enqueue(this.key, Math.max(effect.delayMs, backoffMs), effect.lane, effect.reasons[0] ?? '');
        return false;
      }
      case 'call':
        this.#call();
        return false;
      case 'endpoint':
        mothership.endpoint(this.component.name, effect.verdict, effect.retryAfterMs);
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

  #start({ next, base }: Of<'start'>, answers: EventOf[], goOn: GoOn): void {
    const mothership = this.#mothership;
    const { world } = mothership;
    this.#sightAtStart = mothership.look.sight(this.uid);
    const credential = world.issue(this.key, next.seq);
    this.#request(
      () => world.swap(this.key, { ...next, credentialId: credential }, base),
      (swap) => {
        if (swap?.kind === 'stored') {
          const { stored } = swap;
          this.#startFailures = 0;
          this.#credential = credential;
          mothership.wrote(this.key, stored);
          answers.push((inputs) => ({ kind: 'started', stored, inputs }));
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

  #store(effect: Of<'store'>, answers: EventOf[], goOn: GoOn): void {
    const mothership = this.#mothership;
    const { world } = mothership;
    this.#request(
      () => world.swap(this.key, effect.next, effect.base),
      (swap) => {
        if (!swap) {
          mothership.later(100, () => this.#store(effect, answers, goOn));
          return;
        }
        if (swap.kind === 'stored') {
          this.state = { ...this.state, stored: swap.stored };
          mothership.wrote(this.key, swap.stored);
        } else {
          answers.push((inputs) => ({ kind: 'conflict', stored: swap.stored, inputs }));
        }
        goOn(swap.kind === 'conflict');
      },
    );
  }

  #apply(effect: Of<'apply'>, answers: EventOf[], goOn: GoOn): void {
    const { world } = this.#mothership;
    const { name } = this.component;
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

  #retire(effect: Of<'retire'>, answers: EventOf[], goOn: GoOn): void {
    const { world } = this.#mothership;
    this.#request(
      () => {
        world.withdraw(this.uid, this.component.name);
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
    const { name } = this.component;
    const { timeoutMs, maxConcurrent } = mothership.registration(this.component);
    this.#calledSeq = seq;
    this.#checks.called(record);
    mothership.turns.called(this.uid, name, maxConcurrent);
    world.dispatch(this.key, record, this.#credential);
    this.#calling += 1;
    const call = { isOver: false };
    const { key, uid, component } = this;
    const run = { key, uid, seq, operation: record.operation, credential: this.#credential, component };
    callComponent(world, run, {
      outcome: (outcome) => mothership.later(1, () => this.#answered(call, this.outcomeOf(seq, outcome))),
      accepted: (leaseMs) => mothership.later(1, () => this.#answered(call, this.#accepted(seq, leaseMs))),
      notAccepted: (retryAfterMs) =>
        mothership.later(1, () =>
          this.#answered(call, (inputs) =>
            this.#isOn(seq) ? { kind: 'notAccepted', retryAfterMs, inputs } : undefined,
          ),
        ),
      broken: (code) => mothership.later(1, () => this.#answered(call, this.#broken(seq, code))),
    });
    mothership.later(timeoutMs, () => this.#answered(call, this.#broken(seq, 'Timeout')));
  }

  /** The first answer counts. The turn lasts as long as the call. */
  #answered(call: { isOver: boolean }, event: EventOf): void {
    if (call.isOver) return;
    call.isOver = true;
    this.#calling -= 1;
    this.push(event);
  }

  #isOn(seq: number): boolean {
    return this.state.stored?.record.seq === seq;
  }

  #accepted(seq: number, leaseMs: number): EventOf {
    return () => {
      if (!this.#isOn(seq)) return undefined;
      this.#checks.granted(seq, leaseMs);
      return { kind: 'accepted', leaseMs };
    };
  }

  #broken(seq: number, code: string): EventOf {
    return (inputs) => (this.#isOn(seq) ? { kind: 'broken', code, message: code, inputs } : undefined);
  }
}

function isAtWork({ phase, stored }: KeyState): boolean {
  if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
  return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
}

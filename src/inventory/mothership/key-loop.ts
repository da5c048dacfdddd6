import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../api/inventory/missing.ts';
import { sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { type Deferred, deferred } from '../../kit/promises.ts';
import { lanes, type Trigger, trigger, triggerReasons } from '../core/lanes.ts';
import type { StoredRecord } from '../core/run-record.ts';
import { type Effect, freshKey, type Inputs, type KeyEvent, type KeyState, type Row } from '../core/step.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { Reply } from '../ports/component-client.ts';
import type { RunToken } from '../ports/token-issuer.ts';
import type { Registration } from '../registration.ts';
import type { Sight } from './look.ts';
import { Mailbox, type Task } from './mailbox.ts';
import { mayPass } from './persist.ts';
import type { Work } from './work.ts';

/** What was looked up for an event. */
interface Found extends Sight {
  readonly registration: Registration;
  readonly inputs: Inputs;
}

/** What an effect came to, where `step` has to know. */
type Answer = { readonly event: EventOf | undefined; readonly isLost?: true } | undefined;

type EventOf = (found: Found) => KeyEvent;

/** The run that is on. */
interface Current {
  readonly seq: number;
  readonly registration: Registration;
  /** What it was started with; undefined when another process started it. */
  readonly sight: Sight | undefined;
  /** The token that it has now; undefined when another process started it. */
  token: RunToken | undefined;
  /** One that it is to have once the record that names it is stored. */
  withheld: RunToken | undefined;
  /** Every credential that it has had. */
  readonly credentials: string[];
}

/**
 * The life of one key: events come in, `step` says what follows, and that is carried out in order before the next event is looked at.
 * Only calls to components are not waited for; their answers are events.
 */
export class KeyLoop {
  readonly key: ComponentKey;
  readonly text: string;
  readonly #work: Work;
  #state: KeyState = freshKey;
  #current: Current | undefined;
  #registration: Registration | undefined;
  /** While there is anything to do. */
  #mailbox: Mailbox | undefined;
  #inTurn = false;
  #call: Deferred<void> | undefined;
  /** It could not be handled, and is to be tried again. */
  #broken = false;
  /** Nor is it known how much of what followed was carried out: until it is looked at anew, events say nothing. */
  #lost = false;
  #unstored = false;
  #written: { readonly from: string; readonly stored: StoredRecord } | undefined;
  /** Monotonic milliseconds of the first trigger that is still to be answered. */
  #wantedSince: number | undefined;
  #wantedLane: number = lanes.time;
  #dropped = false;

  constructor(key: ComponentKey, work: Work) {
    this.key = key;
    this.text = keyText(key);
    this.#work = work;
  }

  get state(): KeyState {
    return this.#state;
  }

  get current(): Current | undefined {
    return this.#current;
  }

  /** The record that its state has was refused by the API server: in the store still lies the one before. */
  get unstored(): boolean {
    return this.#unstored;
  }

  /** The lane that it waits in. */
  get lane(): number {
    return this.#state.pending?.lane ?? lanes.time;
  }

  trigger(trigger: Trigger): void {
    this.#do(() => {
      if (trigger.atMs === undefined && this.#wantedSince === undefined) {
        this.#wantedSince = this.#work.clock.monotonic();
        this.#wantedLane = trigger.lane;
      }
      return this.#take(({ inputs }) => ({ kind: 'trigger', trigger, inputs }));
    });
  }

  /**
   * The entry has other content. Its record does not tell yet what an outcome misses that is being stored at this moment; so whether
   * that has come is looked up once it does.
   */
  contentChanged(): void {
    if (!this.#mailbox) return;
    this.#do(() => {
      const about = this.#state.stored?.record.lastOutcome?.missing[0]?.path;
      if (about === undefined) return undefined;
      const trigger = { reason: triggerReasons.inputArrived, about, lane: lanes.input, atMs: undefined };
      return this.#take(({ inputs }) => ({ kind: 'trigger', trigger, inputs }));
    });
  }

  /** The record as it lies in the store, for what is not known of it yet. */
  found(stored: StoredRecord | undefined): void {
    this.#do(() => {
      if (!this.#isNews(stored)) return undefined;
      return this.#found(stored);
    });
  }

  deleting(): void {
    this.#do(() => this.#take(({ inputs }) => ({ kind: 'deleting', inputs })));
  }

  /** The entry is gone, or nobody has to do with the component any more. */
  drop(): void {
    this.#dropped = true;
    this.#work.limits.drop(this.key);
  }

  /** Its turn in the queue: ends when everything has come to rest, a call included. */
  async turn(): Promise<void> {
    this.#inTurn = true;
    try {
      await this.#settled(() => this.#onTurn());
      await this.#call?.promise;
      // What the answer brought about.
      await this.#settled(() => undefined);
    } finally {
      this.#inTurn = false;
      this.#releaseIfFree();
      this.#awaitLease();
    }
  }

  /** A report of the run that is on; see `Reports`. Runs between events. */
  report<T>(task: (take: (event: (found: Found) => KeyEvent) => Promise<void>) => Promise<T>): Promise<T> {
    const answer = deferred<T>();
    const failed = (error: unknown): void => {
      answer.reject(error);
      // Otherwise nothing has happened yet, and it is reported again.
      if (this.#lost) throw error;
    };
    this.#do(() => {
      if (this.#lost) return void answer.reject(new Error('the run is being looked at anew'));
      return task(async (event) => {
        await this.#take(event);
      }).then(answer.resolve, failed);
    });
    return answer.promise;
  }

  /** As an event: of the run that is on, with what it misses looked up. */
  outcomeEvent(outcome: Outcome): (found: Found) => KeyEvent {
    const seq = this.#current?.seq ?? 0;
    return (found) => ({
      kind: 'outcome',
      seq,
      outcome: this.#work.outputs.withoutIdle(found.entry, outcome),
      ...this.#looked(found, outcome.outcome === 'NotReady' ? outcome.missing : undefined),
    });
  }

  /** The run has a new token besides the one before. */
  refreshed(token: RunToken): void {
    if (!this.#current) return;
    this.#current.token = token;
    this.#current.withheld = undefined;
    this.#current.credentials.push(token.id);
  }

  /** Its new token is not to be given out yet. */
  withhold(token: RunToken): void {
    if (this.#current) this.#current.withheld = token;
  }

  #do(task: Task): void {
    this.#mailbox ??= new Mailbox({
      onError: (error) => {
        if (!this.#work.signal.aborted) this.#broke(error);
      },
      onEmpty: () => {
        this.#mailbox = undefined;
        if (!this.#inTurn) this.#releaseIfFree();
      },
    });
    this.#mailbox.do(task);
  }

  /** Resolves once it is done with, also when it failed. */
  #settled(task: Task): Promise<void> {
    const settled = deferred();
    this.#do(task);
    this.#do(() => void settled.resolve());
    return settled.promise;
  }

  /** A bug, or a key that cannot be handled: it shows in the entry, is tried again, and nothing else is stopped by it. */
  #broke(error: unknown): void {
    const work = this.#work;
    this.#state = { ...this.#state, row: work.teller.broke(this.key, error) };
    work.teller.row(this.key);
    this.#broken = true;
    work.failures.failed(this);
    work.enqueue(this.text, triggerReasons.requeue, lanes.time, work.failures.delayMs(this));
  }

  /** As whoever begins to lead would go on with it. What came while it could not be handled was not heard: that is worth a run. */
  async #recover(): Promise<void> {
    const { failures } = this.#work;
    const before = failures.count(this);
    if (this.#lost) {
      const { row, recent, lastStart } = this.#state;
      this.#state = { ...freshKey, row, recent, lastStart };
      this.#current = undefined;
      this.#lost = false;
      try {
        await this.#found(this.#work.runs.find(this.key));
      } catch (error) {
        this.#lost = true;
        throw error;
      }
    }
    if (this.#state.wake?.reason !== triggerReasons.retry) {
      await this.#take(({ inputs }) => ({ kind: 'trigger', trigger: trigger(triggerReasons.requeue), inputs }));
    }
    this.#broken = false;
    await this.#take(({ inputs }) => ({ kind: 'slot', inputs }));
    if (failures.count(this) === before) failures.forget(this);
  }

  /** One event: `step`, then its effects, then what they answered. */
  #take(eventOf: (found: Found) => KeyEvent): Promise<void> | undefined {
    const found = this.#dropped || this.#lost ? undefined : this.#look();
    if (!found) return undefined;
    const { clock, random, step, limits } = this.#work;
    const { state, effects } = step(this.#state, eventOf(found), {
      nowMs: clock.now(),
      monotonicMs: clock.monotonic(),
      random,
      entry: found.entry.ref,
      registration: found.registration,
    });
    this.#state = state;
    if (isAtWork(state)) {
      limits.hold(this.key);
    } else {
      // It holds a version of the entry.
      this.#current = undefined;
      if (state.phase === 'idle') this.#wantedSince = undefined;
    }
    if (!effects.some(isSlow)) {
      for (const effect of effects) this.#quick(effect, found);
      return undefined;
    }
    return this.#carryOut(effects, found);
  }

  async #carryOut(effects: readonly Effect[], found: Found): Promise<void> {
    const answers: ((found: Found) => KeyEvent)[] = [];
    let lost = false;
    try {
      for (const effect of effects) {
        if (!isSlow(effect)) {
          // Whatever else has become of it: nobody is called, but it is looked at again and told of.
          if (!lost || effect.kind !== 'call') this.#quick(effect, found);
        } else if (!lost) {
          const answer = await this.#slow(effect, found);
          if (answer?.event) answers.push(answer.event);
          lost = answer?.isLost === true;
        }
      }
      for (const event of answers) await this.#take(event);
    } catch (error) {
      this.#lost = true;
      throw error;
    }
  }

  #look(): Found | undefined {
    const { look, registry } = this.#work;
    this.#registration = registry.get(this.key.component) ?? this.#registration;
    const sight = look.sight(this.key.entryUid);
    if (!sight || !this.#registration) return undefined;
    const inputs = look.inputs(sight, this.#registration, this.#state.stored);
    return { ...sight, registration: this.#registration, inputs };
  }

  #looked({ entry, present, inputs }: Found, missing: readonly MissingInput[] | undefined) {
    if (!missing) return { inputs };
    const { look } = this.#work;
    const sight = this.#current?.sight;
    return {
      inputs,
      missing: {
        heldAtStart: sight !== undefined && look.holds(sight, missing),
        holdsNow: look.holds({ entry, present }, missing),
      },
    };
  }

  #onTurn(): Promise<unknown> | undefined {
    if (this.#call) return undefined;
    return this.#broken ? this.#recover() : this.#take(({ inputs }) => ({ kind: 'slot', inputs }));
  }

  async #found(stored: StoredRecord | undefined): Promise<void> {
    await this.#take(({ inputs }) => ({ kind: 'found', stored, inputs }));
    if (this.#state.stored === stored) this.#unstored = false;
    const record = this.#state.stored?.record;
    const registration = this.#registration;
    if (!record || !registration || !isAtWork(this.#state) || this.#current?.seq === record.seq) return;
    const credentials = [record.credentialId, record.previousCredential?.id].filter((id) => id !== undefined);
    this.#current = {
      seq: record.seq,
      registration,
      sight: undefined,
      token: undefined,
      withheld: undefined,
      credentials,
    };
  }

  #quick(effect: Effect, found: Found): void {
    const work = this.#work;
    const { key } = this;
    switch (effect.kind) {
      case 'enqueue': {
        // Before it is in the queue again: others may wait for its slot in a more urgent lane.
        if (!this.#inTurn) this.#releaseIfFree();
        const delayMs = Math.max(effect.delayMs, work.failures.delayMs(this));
        work.enqueue(this.text, effect.reasons[0] ?? triggerReasons.requeue, effect.lane, delayMs);
        return;
      }
      case 'call':
        this.#startCall(found);
        return;
      case 'endpoint':
        work.endpoint(key.component, effect.verdict, effect.retryAfterMs);
        return;
      case 'tell':
        work.teller.row(key);
        return;
      case 'warn':
        work.teller.warn(found.entry, key, effect.code, effect.message);
        return;
      default:
        return;
    }
  }

  async #slow(effect: Slow, found: Found): Promise<Answer> {
    const work = this.#work;
    switch (effect.kind) {
      case 'start':
        return this.#start(effect, found);
      case 'store':
        return this.#store(effect);
      case 'apply': {
        const { registration } = this.#current ?? found;
        const refusal = await work.outputs.apply(found.entry.ref, registration, effect.outputs, work.signal);
        return { event: (latest) => ({ kind: 'applied', refusal, ...this.#looked(latest, undefined) }) };
      }
      case 'retire':
        await this.#retire(effect, found);
        return undefined;
    }
  }

  async #store(effect: Extract<Effect, { kind: 'store' }>): Promise<Answer> {
    const work = this.#work;
    const swap = await work.records.store(effect.next, this.#latest(effect.base), work.signal);
    if (swap.kind === 'refused') {
      this.#storeLater(effect, swap.message);
      return { event: undefined, isLost: true };
    }
    work.refusals.forget(this);
    this.#unstored = false;
    if (swap.kind === 'conflict') {
      // What was to follow is found out anew.
      work.enqueue(this.text, triggerReasons.requeue, lanes.input, 0);
      return this.#beaten(swap.stored);
    }
    this.#written = { from: effect.base.resourceVersion, stored: swap.stored };
    // `step` may have gone on from there.
    if (this.#state.stored?.record === effect.next) this.#state = { ...this.#state, stored: swap.stored };
    work.teller.stored(this.key, effect.base.record, swap.stored.record);
    return undefined;
  }

  /** What is refused shows, and is tried again between other events, unless one of those has made it pointless. */
  #storeLater(effect: Extract<Effect, { kind: 'store' }>, message: string): void {
    const { clock, signal, refusals, enqueue } = this.#work;
    const { row } = this.#state;
    this.#unstored = true;
    this.#show({ state: 'Failed', reason: 'NotStored', message });
    const shown = this.#state.row;
    const again = async (): Promise<void> => {
      const { phase, stored } = this.#state;
      if (this.#dropped || phase === 'gone' || stored?.record !== effect.next) return;
      if (this.#state.row === shown) this.#state = { ...this.#state, row };
      const answer = await this.#store(effect);
      if (answer?.event) await this.#take(answer.event);
      if (answer) return;
      this.#work.teller.row(this.key);
      // What was to follow from it.
      enqueue(this.text, triggerReasons.requeue, lanes.input, 0);
    };
    refusals.failed(this);
    sleep(clock, refusals.delayMs(this), signal).then(
      () => this.#do(again),
      () => undefined,
    );
  }

  /** What cannot be taken out stays with its record, shows, and is tried again. */
  async #retire(effect: Extract<Effect, { kind: 'retire' }>, { entry, registration, inputs }: Found): Promise<void> {
    const work = this.#work;
    const { base, ended } = effect;
    if (ended) work.teller.stored(this.key, base.record, ended);
    const refusal = await work.outputs.retire(entry.ref, registration, this.#latest(base), work.signal);
    this.#unstored = refusal !== undefined;
    if (!refusal) {
      work.failures.forget(this);
      work.retired(this.key, entry, inputs.mayRun);
      return;
    }
    this.#show({ state: 'Deleting', reason: refusal.code, message: refusal.message });
    work.failures.failed(this);
    work.enqueue(this.text, triggerReasons.requeue, lanes.time, work.failures.delayMs(this));
  }

  /** In place of what its last run came to. */
  #show({ state, reason, message }: Pick<Row, 'state' | 'reason' | 'message'>): void {
    const row: Row = { state, reason, message, missing: [], observedInputs: undefined, livelock: undefined };
    this.#state = { ...this.#state, row };
    this.#work.teller.row(this.key);
  }

  async #start({ next, base }: Extract<Effect, { kind: 'start' }>, found: Found): Promise<Answer> {
    const work = this.#work;
    try {
      const token = await work.tokens.forRun(found.entry, found.registration, work.signal);
      const swap = await work.runs.swap({ ...next, credentialId: token.id }, base, work.signal);
      work.failures.forget(this);
      this.#unstored = false;
      if (swap.kind === 'conflict') return this.#beaten(swap.stored);
      const { stored } = swap;
      this.#current = {
        seq: stored.record.seq,
        registration: found.registration,
        sight: { entry: found.entry, present: found.present },
        token,
        withheld: undefined,
        credentials: [token.id],
      };
      return { event: ({ inputs }) => ({ kind: 'started', stored, inputs }) };
    } catch (error) {
      work.signal.throwIfAborted();
      if (!mayPass(error)) throw error;
      work.failures.failed(this);
      work.teller.notStarted(this.key, describe(error));
      return notDone(base);
    }
  }

  /** What lies in the store since this very key wrote it. */
  #latest(base: StoredRecord): StoredRecord {
    return this.#written?.from === base.resourceVersion ? this.#written.stored : base;
  }

  /** Somebody else has written the record first. */
  #beaten(stored: StoredRecord | undefined): Answer {
    this.#work.teller.conflict();
    return notDone(stored);
  }

  #startCall({ entry }: Found): void {
    const work = this.#work;
    const { stored } = this.#state;
    const current = this.#current;
    if (!stored || !current?.token || !current.sight) return;
    const { clock } = work;
    if (this.#wantedSince !== undefined) {
      work.teller.dispatched(stored.record, this.#wantedLane, clock.monotonic() - this.#wantedSince);
      this.#wantedSince = undefined;
    }
    const call = deferred();
    this.#call = call;
    const ended = (reply: Reply | undefined): void => {
      this.#do(() => {
        if (this.#call === call) this.#call = undefined;
        call.resolve();
        return reply && this.#onReply(current, reply);
      });
    };
    work.calls.call(entry, stored.record, current.token, current.registration, work.signal).then(ended, (error) => {
      if (!work.signal.aborted) ended({ kind: 'broken', code: 'Crashed', message: describe(error) });
      call.resolve();
    });
  }

  #onReply(current: Current, reply: Reply): Promise<unknown> | undefined {
    // A report or the end of the lease may have been first.
    if (this.#current !== current || this.#state.stored?.record.seq !== current.seq || !isAtWork(this.#state)) {
      return undefined;
    }
    if (reply.kind !== 'notCalled') this.#work.uncalled.forget(this);
    switch (reply.kind) {
      case 'outcome':
        return this.#take(this.outcomeEvent(reply.outcome));
      case 'accepted': {
        const leaseMs = Math.max(1000, Math.min(reply.leaseMs ?? current.registration.leaseMs, this.longestLeaseMs()));
        return this.#take(() => ({ kind: 'accepted', leaseMs }));
      }
      case 'notAccepted':
        return this.#take((found) => ({
          kind: 'notAccepted',
          retryAfterMs: reply.retryAfterMs,
          ...this.#looked(found, undefined),
        }));
      case 'notCalled': {
        const { teller, uncalled } = this.#work;
        teller.notStarted(this.key, reply.message);
        uncalled.failed(this);
        // No breaker slows this down.
        const retryAfterMs = Math.max(reply.retryAfterMs ?? 0, uncalled.delayMs(this));
        return this.#take((found) => ({
          kind: 'notAccepted',
          notCalled: true,
          retryAfterMs,
          ...this.#looked(found, undefined),
        }));
      }
      case 'broken':
        return this.#take((found) => ({
          kind: 'broken',
          code: reply.code,
          message: reply.message,
          ...this.#looked(found, undefined),
        }));
    }
  }

  /** Whatever has become of its call: a run that is still on is over with its lease. */
  #awaitLease(): void {
    const { clock, enqueue } = this.#work;
    const { leaseAt } = this.#state;
    // What is broken has a time of its own for being tried again.
    if (this.#dropped || this.#broken || leaseAt === undefined || !isAtWork(this.#state)) return;
    enqueue(this.text, triggerReasons.leaseOver, lanes.time, leaseAt - clock.monotonic());
  }

  /** Milliseconds that the run that is on may still take. */
  longestLeaseMs(): number {
    const { lastStart } = this.#state;
    if (lastStart === undefined || !this.#current) return 0;
    return lastStart + this.#current.registration.maxRunMs - this.#work.clock.monotonic();
  }

  #isNews(stored: StoredRecord | undefined): boolean {
    const known = this.#state.stored;
    if (!stored || !known) return stored !== known;
    return stored.resourceVersion !== known.resourceVersion && !this.#work.isOlder(stored, known);
  }

  #releaseIfFree(): void {
    if (this.#lost || !isAtWork(this.#state)) this.#work.limits.release(this.text);
  }
}

/** The record is as it is said here, and nothing of what was to follow happens. */
const notDone = (stored: StoredRecord | undefined): Answer => ({
  event: ({ inputs }) => ({ kind: 'conflict', stored, inputs }),
  isLost: true,
});

/** Whether a run of it is on, as far as the fence is concerned or not. */
function isAtWork({ phase, stored }: KeyState): boolean {
  if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
  return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
}

type Slow = Extract<Effect, { kind: 'start' | 'store' | 'apply' | 'retire' }>;

const slow: ReadonlySet<Effect['kind']> = new Set(['start', 'store', 'apply', 'retire']);
const isSlow = (effect: Effect): effect is Slow => slow.has(effect.kind);

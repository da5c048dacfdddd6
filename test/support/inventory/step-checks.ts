import { maxEntryBytes } from '../../../src/api/inventory/names.ts';
import type { LastOutcome, RunRecord } from '../../../src/inventory/core/run-record.ts';
import type { Effect, KeyEvent, KeyState } from '../../../src/inventory/core/step.ts';
import type { LoopHost } from './loop-host.ts';
import type { SimComponent } from './simulated-world.ts';
import { hold } from './violation.ts';

/** Longer than any spacing of a livelock. */
const longestSpacingMs = 90_000;
const graceMs = 10_000;
/** Of those who write and read when a key is due. */
const clocksApartMs = 300_000;
/** Until a lease is stored, by a process that may stand still meanwhile. */
const storingMs = 20_000;
/** What may keep a key waiting besides itself: the probe of a breaker, other runs in its slots, lost requests. */
const slackMs = 60_000;

/** A key in a process, as it is looked at from outside. */
interface CheckedLoop {
  readonly key: string;
  readonly uid: string;
  readonly component: SimComponent;
  readonly state: KeyState;
  readonly isCalling: boolean;
  readonly startFailures: number;
}

/** What has to be true of a key in one process, whatever happens: looked at after each event. */
export class StepChecks {
  readonly #mothership: LoopHost;
  readonly #loop: CheckedLoop;
  #event: unknown;
  /** The run that was found at work, and when. */
  #found: { readonly seq: number; readonly at: number } | undefined;
  /** When the last run of this very process ended with Done. */
  #doneAt: number | undefined;
  /** When it is to run again by itself since then, as it was said at its end. */
  #wake: KeyState['wake'];
  #calledAt: number | undefined;

  constructor(mothership: LoopHost, loop: CheckedLoop) {
    this.#mothership = mothership;
    this.#loop = loop;
  }

  granted(seq: number, leaseMs: number): void {
    this.#mothership.world.granted.set(`${this.#loop.key}#${seq}`, this.#now + leaseMs);
  }

  /** A call is about to be made. */
  called(record: RunRecord): void {
    const { seen } = this.#mothership;
    const isOfDeleted = seen.get(this.#loop.uid)?.deleting === true;
    this.#hold(record.operation === 'delete' || !isOfDeleted, 'I18: reconcile never starts after deletionTimestamp');
    this.#calledAt = this.#now;
  }

  /** Nothing is left to be done of what has happened to the key. */
  rested(state: KeyState): void {
    const { phase, pending, wake, leaseAt, stored } = state;
    const { isCalling, key } = this.#loop;
    this.#event = 'at rest';
    const dueAt = this.#mothership.turns.dueAt(key);
    if (phase === 'queued' && pending) {
      this.#hold(this.#isBy(dueAt, pending.dueAt + longestSpacingMs), 'I2, I8: what is wanted has its turn');
    } else if (phase === 'idle' && wake) {
      this.#hold(this.#isBy(dueAt, wake.at + longestSpacingMs), 'I2: what runs again by itself has its turn');
    } else if ((phase === 'running' || phase === 'draining') && stored?.record.phase === 'Running' && !isCalling) {
      this.#hold(leaseAt !== undefined && this.#isBy(dueAt, leaseAt + storingMs), 'I2, I13: a run ends with its lease');
    }
  }

  stepped(before: KeyState, event: KeyEvent, state: KeyState, effects: readonly Effect[]): void {
    this.#event = { before, event };
    this.#hold(fits(state), 'a state and its record fit');
    let first = 0;
    while (effects[first]?.kind === 'endpoint') first += 1;
    for (const [index, effect] of effects.entries()) {
      if (effect.kind === 'store') this.#hold(index === first, 'I3: the record is written before what follows from it');
      if (effect.kind === 'call') this.#hold(event.kind === 'started', 'I15: a call follows a stored start');
      if (effect.kind === 'start') this.#checkStart(effect.next, before.pending === undefined);
    }
    if (event.kind === 'notAccepted' && before.stored && state.stored) {
      this.#hold(state.stored.record.attempt === before.stored.record.attempt, 'I12: attempts are unchanged');
    }
    // By the clock of somebody else.
    if (event.kind === 'found' || event.kind === 'conflict') {
      this.#forget();
      const { seq, phase } = state.stored?.record ?? {};
      if (seq !== undefined && phase !== 'Idle' && seq !== this.#found?.seq) this.#found = { seq, at: this.#now };
    }
    const ended = state.stored?.record.lastOutcome;
    if (!ended || ended.seq === before.stored?.record.lastOutcome?.seq) return;
    if (event.kind === 'found' || event.kind === 'conflict') return;
    if (event.kind === 'leaseOver' || event.kind === 'slot') {
      const { world, isGuarded } = this.#mothership;
      // Whoever stood still does not know what somebody else has granted since; nor does what it says count.
      const until = isGuarded ? 0 : (world.granted.get(`${this.#loop.key}#${ended.seq}`) ?? 0);
      // Of a run of somebody else's the lease is a hint, but for some time whoever found it waits.
      const waitsUntil = this.#found?.seq === ended.seq ? this.#found.at + graceMs : Number.POSITIVE_INFINITY;
      this.#hold(this.#now + 1 >= Math.min(until, waitsUntil), 'I22: no run is lost before its lease is over');
    }
    this.#doneAt = ended.outcome === 'Done' ? this.#now : undefined;
    this.#wake = state.wake;
    if (ended.outcome === 'Retry') this.#checkRetry(ended, before, state);
  }

  /** Whether it has its turn by then, unless it has to wait because its start failed. */
  #isBy(dueAt: number | undefined, at: number): boolean {
    return dueAt !== undefined && (this.#loop.startFailures > 0 || dueAt <= at + 1);
  }

  #checkStart(next: RunRecord, isByTime: boolean): void {
    const { seen, world, isGuarded } = this.#mothership;
    const { uid, component } = this.#loop;
    const { name } = component;
    const now = this.#now;
    this.#mothership.turns.starts(this.#loop.key);
    const entry = seen.get(uid);
    if (!entry) return;
    const { deleting, suspended, disabled, abandoned, bytes } = entry.facts;
    this.#hold(next.operation === (deleting ? 'delete' : 'reconcile'), 'I18: what starts is what may');
    this.#hold(next.entry.uid === uid, 'I19: a run is of the entry that is there');
    this.#hold(!suspended, 'I18: nothing starts while suspended');
    this.#hold(deleting || !disabled.includes(name), 'I18: nothing starts that is not enabled');
    this.#hold(!deleting || !abandoned.includes(name), 'I18: nothing starts that was abandoned');
    this.#hold(deleting || bytes <= maxEntryBytes, 'I20: nothing starts of an entry that is too large');
    const isSpaced = this.#calledAt === undefined || now - this.#calledAt >= 200 - 1e-6;
    this.#hold(isSpaced, 'I21: starts are 200 ms apart');
    const digest = this.#mothership.digest(entry, component);
    this.#hold(next.inputsDigest === digest, 'I10: the digest is of the version that was seen');
    const [reason] = next.reasons;
    if (next.reasons.length === 1 && reason === 'Interval') {
      const { intervalMs } = this.#mothership.registration(component);
      const doneAt = world.doneAt.get(this.#loop.key);
      // What stood still knows too little, and what it says does not count.
      const isEarly = isByTime && !isGuarded && doneAt !== undefined && now < doneAt + intervalMs * 0.9 - clocksApartMs;
      this.#hold(!isEarly, 'I22: nothing is hastened by more than clocks are apart');
    }
    if (next.reasons.length === 1 && reason === 'Interval' && this.#doneAt !== undefined) {
      const { intervalMs } = this.#mothership.registration(component);
      this.#hold(now - this.#doneAt >= intervalMs * 0.9 - 1, 'I22: no clock hastens an interval');
    }
    if (next.reasons.length === 1 && this.#wake && reason === this.#wake.reason) {
      this.#hold(now >= this.#wake.at - 1, 'I22: no clock hastens what is due by time');
    }
    this.#forget();
  }

  #checkRetry({ seq }: LastOutcome, before: KeyState, state: KeyState): void {
    const { world } = this.#mothership;
    const { component, uid } = this.#loop;
    const { baseMs, capMs } = this.#mothership.registration(component).retry;
    const delayMs = (state.wake?.at ?? 0) - this.#now;
    const longestMs = Math.min(capMs, baseMs * 2 ** (before.stored?.record.attempt ?? 0));
    this.#hold(delayMs >= 0 && delayMs <= longestMs + 1, 'I2: a retry waits for its back-off and no longer');
    world.backoffs.sum += delayMs / longestMs;
    world.backoffs.count += 1;
    if (world.faulty) return;
    this.#mothership.later(capMs + slackMs, () => {
      const facts = this.#mothership.seen.get(uid)?.facts;
      const latest = this.#loop.state.stored?.record;
      if (!facts || facts.deleting || facts.disabled.includes(component.name) || facts.bytes > maxEntryBytes) return;
      const isOver = latest === undefined || latest.seq > seq || latest.lastOutcome?.outcome !== 'Retry';
      this.#hold(isOver, 'I2: a key runs again within its lease and its back-off');
    });
  }

  get #now(): number {
    return this.#mothership.time.now;
  }

  #forget(): void {
    this.#doneAt = undefined;
    this.#wake = undefined;
  }

  #hold(isSo: boolean, invariant: string): void {
    // Called for each event of each key: no closure where nothing is wrong.
    if (!isSo) hold(false, invariant, () => JSON.stringify([this.#loop.key, this.#now, this.#event, this.#loop.state]));
  }
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

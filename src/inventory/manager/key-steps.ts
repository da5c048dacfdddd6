import { sleep } from '../../kit/clock.ts';
import { type Deferred, deferred } from '../../kit/promises.ts';
import type { Effect, KeyEvent } from '../core/step.ts';
import { step } from '../core/steps/step.ts';
import { lanes, triggerReasons } from '../core/triggers.ts';
import { callComponent, replyEvent } from './component-call.ts';
import type { ComponentSnapshot, EventOf } from './entry-snapshot.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import type { KeyMemory } from './key-memory.ts';
import { type Again, isWrite, write } from './key-writes.ts';

/**
 * Takes the events of one key: `step` says what follows, and that is carried out in order before the next event is looked at. Only
 * calls to components are not waited for; their answers are events.
 */
export class KeySteps {
  readonly #work: KeyLoopDeps;
  readonly #memory: KeyMemory;
  /** While there is anything to do. */
  #mailbox: Mailbox | undefined;
  #call: Deferred<void> | undefined;
  #inTurn = false;

  constructor(memory: KeyMemory, work: KeyLoopDeps) {
    this.#memory = memory;
    this.#work = work;
  }

  get isBusy(): boolean {
    return this.#mailbox !== undefined;
  }

  get isCalling(): boolean {
    return this.#call !== undefined;
  }

  /** Resolves when the call that is under way has been answered. */
  async answered(): Promise<void> {
    await this.#call?.promise;
  }

  /** After whatever goes on already, at once where nothing does. What it throws is trouble. */
  do(task: Task): void {
    this.#mailbox ??= new Mailbox({
      onError: (error) => {
        if (!this.#work.signal.aborted) this.#broke(error);
      },
      onEmpty: () => {
        this.#mailbox = undefined;
        this.releaseIfFree();
      },
    });
    this.#mailbox.do(task);
  }

  /** Resolves once it is done with, also when it failed. */
  settled(task: Task): Promise<void> {
    const settled = deferred();
    this.do(task);
    this.do(() => void settled.resolve());
    return settled.promise;
  }

  /** While `turn` goes on, its slot is not given away. */
  async inTurn(turn: () => Promise<void>): Promise<void> {
    this.#inTurn = true;
    try {
      await turn();
    } finally {
      this.#inTurn = false;
      this.releaseIfFree();
    }
  }

  /** One event: `step`, then its effects, then what they answered. */
  take(eventOf: EventOf): Promise<void> | undefined {
    const found = this.#look();
    if (!found) return undefined;
    const effects = this.#step(eventOf(found), found);
    if (effects.some(isWrite)) return this.#carryOut(effects, found);
    for (const effect of effects) this.#quick(effect, found);
    return undefined;
  }

  #look(): ComponentSnapshot | undefined {
    const { snapshots: look, registry } = this.#work;
    const memory = this.#memory;
    if (memory.dropped || memory.trouble === 'lost') return undefined;
    const { entryUid, component } = memory.key;
    memory.registration = registry.get(component) ?? memory.registration;
    const sight = look.snapshot(entryUid);
    if (!sight || !memory.registration) return undefined;
    const inputs = look.inputs(sight, memory.registration, memory.state.stored);
    return { ...sight, registration: memory.registration, inputs };
  }

  #step(event: KeyEvent, { entry, registration }: ComponentSnapshot): readonly Effect[] {
    const { clock, random, limits } = this.#work;
    const memory = this.#memory;
    const { state, effects } = step(memory.state, event, {
      nowMs: clock.now(),
      monotonicMs: clock.monotonic(),
      random,
      entry: entry.ref,
      registration,
    });
    memory.state = state;
    if (memory.isAtWork) {
      limits.hold(memory.key);
    } else {
      // It holds a version of the entry.
      memory.run = undefined;
      if (state.phase === 'idle') memory.wanted = undefined;
    }
    return effects;
  }

  async #carryOut(effects: readonly Effect[], found: ComponentSnapshot): Promise<void> {
    const events: EventOf[] = [];
    let stopped = false;
    try {
      for (const effect of effects) {
        if (!isWrite(effect)) {
          // Whatever else has become of it: nobody is called, but it is looked at again and told of.
          if (!stopped || effect.kind !== 'call') this.#quick(effect, found);
        } else if (!stopped) {
          const { event, stops, again } = await write(this.#work, this.#memory, effect, found);
          if (event) events.push(event);
          if (again) this.#later(again);
          stopped = stops === true;
        }
      }
      for (const event of events) await this.take(event);
    } catch (error) {
      this.#memory.trouble = 'lost';
      throw error;
    }
  }

  #later({ delayMs, attempt }: Again): void {
    const { clock, signal } = this.#work;
    const task = async (): Promise<void> => {
      const { event, again } = await attempt();
      if (event) await this.take(event);
      if (again) this.#later(again);
    };
    sleep(clock, delayMs, signal).then(
      () => this.do(task),
      () => undefined,
    );
  }

  #quick(effect: Effect, found: ComponentSnapshot): void {
    const { failures, enqueue, endpoint, reporter: teller } = this.#work;
    const { key, text } = this.#memory;
    switch (effect.kind) {
      case 'enqueue': {
        // Before it is in the queue again: others may wait for its slot in a more urgent lane.
        this.releaseIfFree();
        const delayMs = Math.max(effect.delayMs, failures.delayMs(this.#memory));
        enqueue(text, effect.reasons[0] ?? triggerReasons.requeue, effect.lane, delayMs);
        return;
      }
      case 'call':
        this.#startCall(found);
        return;
      case 'endpoint':
        endpoint(key.component, effect.verdict, effect.retryAfterMs);
        return;
      case 'tell':
        teller.statusChanged(key);
        return;
      case 'warn':
        teller.warn(found.entry, key, effect.code, effect.message);
        return;
      default:
        return;
    }
  }

  #startCall({ entry }: ComponentSnapshot): void {
    const { run } = this.#memory;
    const answer = callComponent(this.#work, this.#memory, entry);
    if (!answer || !run) return;
    const call = deferred();
    this.#call = call;
    answer.then(
      (reply) =>
        this.do(() => {
          if (this.#call === call) this.#call = undefined;
          call.resolve();
          const event = replyEvent(this.#work, this.#memory, run, reply);
          return event && this.take(event);
        }),
      call.resolve,
    );
  }

  /** A bug, or a key that cannot be handled: it shows in the entry, is tried again, and nothing else is stopped by it. */
  #broke(error: unknown): void {
    const { reporter: teller, failures, enqueue } = this.#work;
    const { key, text } = this.#memory;
    this.#memory.show(teller.keyFailed(key, error));
    teller.statusChanged(key);
    this.#memory.trouble ??= 'broken';
    failures.failed(this.#memory);
    enqueue(text, triggerReasons.requeue, lanes.time, failures.delayMs(this.#memory));
  }

  /** Its slot is somebody else's, unless it is in its turn or at work. Whom it calls is at work, though its entry may be gone. */
  releaseIfFree(): void {
    if (this.#inTurn) return;
    const { dropped, trouble, isAtWork, text } = this.#memory;
    if (dropped || trouble === 'lost' || !isAtWork) this.#work.limits.release(text);
  }
}

type Task = () => Promise<unknown> | undefined;

interface MailboxDeps {
  /** What a task has thrown; those after it go on. */
  readonly onError: (error: unknown) => void;
  /** The last task is done with. */
  readonly onEmpty: () => void;
}

/** One task after the other, at once where nothing is to be waited for. */
class Mailbox {
  readonly #deps: MailboxDeps;
  readonly #tasks: Task[] = [];
  #busy = false;

  constructor(deps: MailboxDeps) {
    this.#deps = deps;
  }

  do(task: Task): void {
    this.#tasks.push(task);
    if (!this.#busy) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    for (let task = this.#tasks.shift(); task; task = this.#tasks.shift()) {
      try {
        const going = task();
        if (going) await going;
      } catch (error) {
        this.#deps.onError(error);
      }
    }
    this.#busy = false;
    this.#deps.onEmpty();
  }
}

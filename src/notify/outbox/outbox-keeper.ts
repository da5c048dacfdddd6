import { at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Source } from '../../engine/source.ts';
import { hintSource } from '../../engine/sources/hint.ts';
import type { Runnable } from '../../engine/supervisor.ts';
import { describe } from '../../kit/errors.ts';
import { CallLimit } from '../../kube/json-call.ts';
import { Outbox } from './outbox.ts';
import { nextWriteMs, OutboxStore, type OutboxStoreDeps } from './outbox-store.ts';

interface KeeperDeps extends OutboxStoreDeps {
  readonly random: () => number;
  /** As `FactsReconciler.seenMs`. */
  readonly seenMs: () => number;
}

const key = 'outbox';
/** Of the last write of a leadership; the manager waits 8 s for all controllers. */
const lastWriteLimitMs = 3_000;

/** Reads the outbox before anything else of a leadership starts, and writes what must outlive it. */
export class OutboxKeeper implements Reconciler {
  readonly #deps: KeeperDeps;
  readonly #changes = hintSource('changed');
  #outbox: Outbox;
  #store: OutboxStore;
  #lastWriteMs = 0;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
    this.#store = new OutboxStore(deps);
    this.#outbox = this.#emptyOutbox();
  }

  /** Of the present leadership. Empty before the first. */
  get outbox(): Outbox {
    return this.#outbox;
  }

  get sources(): readonly Source[] {
    return [this.#changes, { name: 'stored', start: (_, signal) => this.#load(signal) }];
  }

  /** After each offer and each answer. */
  changed(): void {
    const atMs = this.#dueMs;
    if (atMs !== undefined) this.#changes.hint(key, 'changed', { atMs });
  }

  async reconcile(_: string, signal: AbortSignal): Promise<Result> {
    if ((this.#dueMs ?? Number.POSITIVE_INFINITY) <= this.#deps.clock.now()) await this.#write(signal);
    return this.#dueMs === undefined ? done : at(this.#dueMs);
  }

  get #dueMs(): number | undefined {
    return nextWriteMs(this.#outbox, this.#lastWriteMs);
  }

  /** As `controller`, and stores the outbox at its end, while this process still holds the Lease. */
  writingLast(controller: Runnable): Runnable {
    return {
      name: controller.name,
      run: async (signal, onSynced) => {
        await controller.run(signal, onSynced);
        await this.#writeLast();
        this.#outbox = this.#emptyOutbox();
      },
    };
  }

  async #load(signal: AbortSignal): Promise<void> {
    this.#store = new OutboxStore(this.#deps);
    const { isFirst, ...state } = await this.#store.load(signal);
    const { clock, random } = this.#deps;
    // So that a crash before the first delivery does not begin anew.
    if (isFirst) await this.#store.write({ ...state, pending: [] }, signal);
    this.#lastWriteMs = clock.now();
    this.#outbox = new Outbox(state, clock.now(), random);
  }

  async #write(signal: AbortSignal): Promise<void> {
    const startMs = this.#deps.clock.now();
    // Another attempt is due at once.
    this.#lastWriteMs = 0;
    try {
      this.#outbox.hasNews = false;
      await this.#store.write(this.#outbox.stateAt(this.#deps.seenMs()), signal);
      this.#lastWriteMs = startMs;
    } catch (error) {
      this.#outbox.hasNews = true;
      throw error;
    }
  }

  async #writeLast(): Promise<void> {
    if (this.#dueMs === undefined) return;
    const { clock, log } = this.#deps;
    const limit = new CallLimit(clock, undefined, lastWriteLimitMs);
    try {
      await this.#write(limit.signal);
    } catch (error) {
      // As after the loss of the Lease. The next leader tells some twice.
      log.info('the last changes of the outbox were not stored', { error: describe(error) });
    } finally {
      limit.release();
    }
  }

  #emptyOutbox(): Outbox {
    const { clock, random } = this.#deps;
    return new Outbox({ floorMs: clock.now(), told: new Map(), refs: new Map(), pending: [] }, clock.now(), random);
  }
}

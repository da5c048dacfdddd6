import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { aborted, withDeadline } from '../kit/promises.ts';
import type { Log } from '../observe/log.ts';
import { Group } from './group.ts';
import { alwaysLeading, type LeaderGate } from './leader-gate.ts';
import { type Runnable, SupervisedController } from './supervisor.ts';

export interface ManagerOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** How long `run` waits at its end for reconciles and the release of Leases. Default 8000. */
  readonly drainMs?: number;
  /** Uniform in [0, 1), for restart delays. */
  readonly random?: () => number;
}

/**
 * Runs controllers. Those added before `run` start in order, each once the previous one behind the
 * same gate has synced. Those added later, such as of another cluster, delay no other. A failed
 * controller restarts with backoff: the end of the process would also stop the controllers that
 * revoke access on time. A lost gate stops only the controllers behind it.
 */
export class Manager {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #drainMs: number;
  readonly #random: () => number;
  readonly #groups = new Map<string, Group>();
  readonly #controllers = new Map<Runnable, { readonly supervised: SupervisedController; readonly group: Group }>();
  /** Aborts when the groups must stop; set by `run`. */
  #groupsSignal: AbortSignal | undefined;
  #groupRuns: Promise<void>[] = [];

  constructor({ clock, log, drainMs = 8000, random = Math.random }: ManagerOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#drainMs = drainMs;
    this.#random = random;
  }

  /**
   * Without `gate`, the controller runs in every replica. Gates of one name: the first is used.
   * @throws CodedError `AlreadyAdded`
   */
  add(controller: Runnable, gate?: LeaderGate): void {
    if (this.#controllers.has(controller)) {
      throw new CodedError('AlreadyAdded', `controller ${controller.name} was added twice; remove it first`);
    }
    const group = this.#groupOf(gate);
    const supervised = new SupervisedController(controller, {
      clock: this.#clock,
      log: this.#log,
      random: this.#random,
    });
    this.#controllers.set(controller, { supervised, group });
    group.add(supervised, this.#groupsSignal !== undefined);
  }

  /** Resolves when its last reconcile has settled, so do not await it inside that one. */
  async remove(controller: Runnable): Promise<void> {
    const entry = this.#controllers.get(controller);
    if (!entry) return;
    this.#controllers.delete(controller);
    await entry.group.remove(entry.supervised);
  }

  /**
   * Runs until `signal` aborts, then stops the controllers, last added first, and releases their
   * Leases. After `drainMs` rejects with `DrainDeadlineExceeded`; Leases of controllers that may
   * still write then expire. A second call rejects with `AlreadyRunning`.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#groupsSignal)
      throw new CodedError('AlreadyRunning', 'run was called twice; a manager runs only once; create another');
    const groupsStop = new AbortController();
    this.#groupsSignal = groupsStop.signal;
    for (const group of this.#groups.values()) this.#groupRuns.push(group.run(groupsStop.signal));
    await aborted(signal);
    try {
      await withDeadline(this.#clock, this.#drainMs, this.#drain(groupsStop));
    } catch (cause) {
      groupsStop.abort();
      const unfinished = this.status().filter(({ state }) => state !== 'stopped' && state !== 'waiting');
      const names = unfinished.map(({ name }) => name).join(', ') || 'a leader gate';
      this.#log.error(
        'controllers did not stop in time; the server does not release their Leases, so a successor must wait until these expire',
        { controllers: unfinished.map(({ name }) => name) },
      );
      throw new CodedError('DrainDeadlineExceeded', `did not stop within ${this.#drainMs} ms: ${names}`, { cause });
    }
  }

  /** In the order of `add`. */
  status(): Pick<SupervisedController, 'name' | 'state'>[] {
    return [...this.#controllers.values()].map(({ supervised: { name, state } }) => ({ name, state }));
  }

  async #drain(groupsStop: AbortController): Promise<void> {
    for (const group of this.#groups.values()) group.close();
    for (const { supervised } of [...this.#controllers.values()].reverse()) await supervised.stop('stopped');
    groupsStop.abort();
    await Promise.all(this.#groupRuns);
  }

  #groupOf(gate: LeaderGate | undefined): Group {
    // No Lease has an empty name.
    const name = gate?.name ?? '';
    const existing = this.#groups.get(name);
    if (existing) return existing;
    const group = new Group(gate ?? alwaysLeading(''), { clock: this.#clock, log: this.#log, random: this.#random });
    this.#groups.set(name, group);
    if (this.#groupsSignal) this.#groupRuns.push(group.run(this.#groupsSignal));
    return group;
  }
}

import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { type ComponentKey, keyText } from '../../../src/inventory/key.ts';
import type { IssuedToken, Reply, ReportAnswer } from '../../../src/inventory/ports.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import { TransportError } from '../../../src/kube/errors.ts';
import { answer, type Behavior, InMemoryManager } from './in-memory-manager.ts';
import { MemoryRegistrations } from './memory-registrations.ts';
import type { Link } from './memory-stores.ts';
import { callComponent } from './simulated-component.ts';
import type { SimManager } from './simulation.ts';
import { SimulatedProcess } from './timeline.ts';
import type { SimulatedWorld } from './world.ts';

const relistMs = 60_000;

/** One process of the inventory feature: the real manager with slow and lossy requests and late watches. */
export class SimulatedManager extends SimulatedProcess implements SimManager {
  readonly world: SimulatedWorld;
  readonly inMemory: InMemoryManager;
  /** By key: the entry version of the run for which a token was last issued. */
  readonly starting = new Map<string, { readonly entry: Entry; readonly registration: Registration }>();
  readonly leadsSince: number;
  /** Whether the manager lost the Lease. It checks this before writes without a compare-and-swap. */
  isGuarded = false;
  readonly #registrations: MemoryRegistrations;
  /** Arrival time of the last watch event. */
  #toldAt = 0;

  constructor(world: SimulatedWorld, skewMs: number) {
    super(world.time, skewMs);
    this.world = world;
    this.leadsSince = world.time.now;
    this.#registrations = new MemoryRegistrations(this.clock, [...world.registrations.values()]);
    const link: Link = {
      request: (act, compared) => this.#request(act, compared),
      deliver: (event) => this.#deliver(event),
    };
    const call: Behavior = (request, _signal, registration) => this.#call(request, registration);
    this.inMemory = new InMemoryManager({
      clock: this.clock,
      inventory: world.inventory,
      registrations: this.#registrations,
      random: world.random,
      components: Object.fromEntries([...world.components.keys()].map((name) => [name, call])),
      link,
      issue: (entry, registration) => this.#issue(entry, registration),
    }).start();
    world.managers.add(this);
    this.#relistLater();
  }

  /** Ends the process or its leadership; its memory is lost. */
  override stop(): void {
    super.stop();
    this.world.managers.delete(this);
    this.inMemory.crash();
  }

  override pause(): void {
    super.pause();
    this.isGuarded = true;
  }

  /** An entry as the manager's watch has it. */
  seen(uid: string): Entry | undefined {
    return this.inMemory.stores.entries.find(uid);
  }

  registration(component: string): Registration | undefined {
    return this.#registrations.registrations.get(component);
  }

  registrationChanged(name: string): void {
    this.#deliver(() => this.#register(name));
  }

  /** Emits an event in the managed cluster. */
  remote(key: ComponentKey): void {
    this.inMemory.remote.event({ ...key, detail: 'services' });
  }

  report(run: ComponentKey & { readonly seq: number }, credential: string, body: unknown): Promise<ReportAnswer> {
    return this.inMemory.manager.reports.report(run, credential, body);
  }

  #register(name: string): void {
    const seed = this.world.registrations.get(name);
    if (seed && seed.generation > this.#registrations.generation(name)) this.#registrations.put(seed);
  }

  /** Sends a request to the API server. `act` or its answer may be lost. */
  #request<T>(act: () => T, compared: boolean): Promise<T> {
    const { world } = this;
    return new Promise((resolve, reject) => {
      const fail = (message: string, notSent: boolean) => () => reject(new TransportError(message, undefined, notSent));
      if (this.isGuarded && !compared) {
        this.later(100, fail('not leading', true));
        return;
      }
      const outMs = world.between(1, world.faulty ? 30 : 3);
      const backMs = world.between(1, world.faulty ? 30 : 3);
      if (world.fault(0.03)) {
        this.later(outMs + backMs, fail('refused', true));
        return;
      }
      world.time.after(outMs, () => {
        let answered: () => void;
        try {
          world.writer = this;
          const result = act();
          answered = () => resolve(result);
        } catch (error) {
          answered = () => reject(error);
        } finally {
          world.writer = undefined;
        }
        const isLost = world.fault(0.03);
        if (isLost) world.records.unsure(this);
        this.later(backMs, isLost ? fail('cut', false) : answered);
      });
    });
  }

  /** Delivers a watch event late but in order; it may be duplicated or lost. */
  #deliver(event: () => void): void {
    const { world } = this;
    if (world.isLossy && world.fault(0.1)) return;
    const copies = world.fault(0.05) ? 2 : 1;
    for (let i = 0; i < copies; i += 1) {
      this.#toldAt = Math.max(this.#toldAt, world.time.now + world.between(0, world.faulty ? 200 : 5));
      this.later(this.#toldAt - world.time.now, event);
    }
  }

  #relistLater(): void {
    const { world } = this;
    this.later(world.faulty ? relistMs : 30 * relistMs, () => {
      for (const name of world.registrations.keys()) this.#register(name);
      this.inMemory.stores.relist();
      this.#relistLater();
    });
  }

  #issue(entry: Entry, registration: Registration): Promise<IssuedToken> {
    const { world } = this;
    const key = keyText({ entryUid: entry.ref.uid, component: registration.name });
    this.starting.set(key, { entry, registration });
    if (entry.ref.uid === world.poisoned) {
      world.count('poisoned');
      throw new TypeError('the handling of this entry fails');
    }
    const issue = (): IssuedToken => {
      const id = world.issue(key);
      return { id, token: `token ${id}`, expiresAtMs: this.clock.now() + world.tokenMs };
    };
    return this.#request(issue, true);
  }

  #call(request: ReconcileRequest, registration: Registration): Promise<Reply> {
    const { world } = this;
    const { seq } = request.run;
    const of = world.components.get(request.component);
    if (!of) throw new Error(request.component);
    world.called(this, request, registration);
    const key = { entryUid: request.entry.id, component: request.component };
    const credential = request.auth.token.replace('token ', '');
    const run = { ...key, seq, operation: request.operation, credential, of };
    return new Promise((resolve, reject) => {
      const arrives = (act: () => void): void => void this.later(1, act);
      const { timeoutMs, maxRunMs } = registration;
      const stop = this.later(timeoutMs, () => resolve({ kind: 'failed', code: 'Timeout', message: 'Timeout' }));
      const reply = (what: Reply): void =>
        arrives(() => {
          stop();
          resolve(what);
        });
      callComponent(world, run, {
        outcome: (outcome) => reply(answer(outcome)),
        accepted: (heartbeatTimeoutMs) =>
          arrives(() => {
            stop();
            world.records.granted(
              `${keyText(key)}#${seq}`,
              this,
              world.time.now + Math.min(heartbeatTimeoutMs, maxRunMs),
            );
            resolve({ kind: 'accepted', heartbeatTimeoutMs });
          }),
        notAccepted: (retryAfterMs) =>
          reply({
            kind: 'notAccepted',
            code: 'Busy',
            message: '',
            ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
          }),
        broken: (code) => reply({ kind: 'failed', code, message: code }),
        crashed: () => arrives(() => reject(new Error('a bug in the client'))),
      });
    });
  }
}

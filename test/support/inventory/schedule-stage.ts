import { callbacks } from './simulated-component.ts';
import type { SimEntry } from './simulated-entry.ts';
import { SimulatedMothership } from './simulated-mothership.ts';
import type { SimComponent, SimulatedWorld } from './simulated-world.ts';

const second = 1000;
const minute = 60 * second;
/** Each clock is wrong by so much at most: two of them differ by 5 minutes, and one jumps as far. */
const clockErrorMs = 2.5 * minute;
const tooManyBytes = 70_000;

/** Those who act in a schedule: users, the clusters, and motherships that come and go. */
export class ScheduleStage {
  readonly world: SimulatedWorld;
  readonly motherships = new Set<SimulatedMothership>();
  leader: SimulatedMothership | undefined;
  /** How often something was done, by what it was. */
  readonly done = new Map<string, number>();
  #uids = 0;

  constructor(world: SimulatedWorld) {
    this.world = world;
    callbacks.set(world, ({ key, seq, credential }, what) => {
      let isTaken = false;
      let refreshed: string | undefined;
      for (const mothership of this.motherships) {
        if (!mothership.leads || mothership.paused) continue;
        const taken = mothership.loops.get(key)?.report(seq, credential, what);
        if (taken) isTaken = true;
        refreshed ??= taken?.credential;
      }
      return { isTaken, credential: refreshed };
    });
  }

  begin(faultMs: number): void {
    const { world } = this;
    this.#takeOver();
    this.#create('e1');
    if (world.chance(0.3)) this.#create('e2');
    const actions = world.between(0, 14);
    for (let i = 0; i < actions; i += 1) world.time.after(world.between(0, faultMs - 1), () => this.#act());
  }

  /** Nobody does anything any more. Some entries are left as they are: disabled in part, or too large. */
  calm(): void {
    const { world } = this;
    for (const [uid, { facts }] of world.entries) {
      const { suspended, disabled, bytes } = facts;
      if (!suspended && disabled.length === 0 && bytes < tooManyBytes) continue;
      world.edit(uid, {
        suspended: false,
        ...(world.chance(0.7) ? { disabled: [] } : {}),
        ...(world.chance(0.7) ? { bytes: 2000 } : {}),
      });
    }
  }

  #create(name: string): void {
    this.#uids += 1;
    const uid = `u${this.#uids}`;
    this.world.create(name, uid, { a: this.world.between(0, 3) });
    if (this.world.chance(0.01)) this.world.away.add(uid);
  }

  #takeOver(): void {
    this.#count('takeover');
    const mothership = new SimulatedMothership(this.world, this.#clockError());
    this.motherships.add(mothership);
    this.leader = mothership;
    mothership.lead();
  }

  #act(): void {
    const { world } = this;
    const uids = [...world.entries.keys()];
    const uid = uids[world.between(0, uids.length - 1)];
    const entry = uid === undefined ? undefined : world.entries.get(uid);
    const components = [...world.components.values()];
    const component = components[world.between(0, components.length - 1)];
    if (uid === undefined || !entry || !component) return;
    const act = acts[world.between(0, acts.length - 1)] ?? 'edit';
    this.#count(act);
    this.#do(act, entry, component);
  }

  #do(act: (typeof acts)[number], { ref, facts }: SimEntry, { name }: SimComponent): void {
    const { world, leader } = this;
    const { uid } = ref;
    switch (act) {
      case 'edit':
        world.edit(uid, { spec: { cluster: { a: world.between(0, 3) } } });
        return;
      case 'editAndBack':
        world.edit(uid, { spec: { cluster: { a: 7 } } });
        world.time.after(world.between(1, 300), () => world.edit(uid, { spec: facts.spec }));
        return;
      case 'force':
        world.edit(uid, { force: { ...facts.force, [name]: next(facts.force[name]) } });
        return;
      case 'remote': {
        const component = world.components.get(name);
        if (component) leader?.later(0, () => leader.remote(uid, component));
        return;
      }
      case 'rotate':
        this.#rotate(uid, facts.force);
        return;
      case 'suspend':
        world.edit(uid, { suspended: !facts.suspended });
        return;
      case 'disable':
        world.edit(uid, { disabled: facts.disabled.includes(name) ? [] : [...facts.disabled, name] });
        return;
      case 'enlarge':
        world.edit(uid, { bytes: facts.bytes < tooManyBytes ? tooManyBytes : 2000 });
        return;
      case 'register':
        world.register(name);
        return;
      case 'delete':
        // Of some, a component has been given up before.
        if (world.chance(0.2)) this.#abandon(uid, name);
        world.edit(uid, { deleting: true });
        if (world.chance(0.2)) world.time.after(world.between(0, 3000), () => this.#abandon(uid, name));
        return;
      case 'create':
        this.#create(ref.name);
        return;
      case 'crash':
        this.#crash();
        return;
      case 'pause':
        this.#pause();
        return;
      case 'jump':
        if (leader) leader.skewMs = this.#clockError();
        return;
    }
  }

  #abandon(uid: string, name: string): void {
    const facts = this.world.entries.get(uid)?.facts;
    if (!facts) return;
    this.#count('abandon');
    this.world.edit(uid, { abandoned: [...facts.abandoned, name] });
  }

  /** The cluster takes another kubeconfig, and its maker is told to fetch it. */
  #rotate(uid: string, force: Readonly<Record<string, string>>): void {
    const { world } = this;
    for (const { name, makesKubeconfig } of world.components.values()) {
      if (!makesKubeconfig) continue;
      world.rotate(uid, world.chance(0.5) ? world.between(0, 10) * second : 0);
      world.edit(uid, { force: { ...force, [name]: next(force[name]) } });
    }
  }

  /** One in five is as wrong as may be. */
  #clockError(): number {
    const { world } = this;
    if (world.chance(0.2)) return world.chance(0.5) ? clockErrorMs : -clockErrorMs;
    return world.between(-clockErrorMs, clockErrorMs);
  }

  #crash(): void {
    const { world, leader } = this;
    if (!leader) return;
    this.leader = undefined;
    this.#end(leader);
    world.time.after(world.between(100, 6000), () => this.#takeOver());
  }

  /** It stands still, another one takes over, it goes on as if nothing had happened, and finds out. */
  #pause(): void {
    const { world, leader } = this;
    if (!leader) return;
    this.leader = undefined;
    leader.pause();
    world.time.after(5000, () => this.#takeOver());
    world.time.after(world.between(4000, 15_000), () => {
      leader.resume();
      world.time.after(world.between(0, 3000), () => this.#end(leader));
    });
  }

  #end(mothership: SimulatedMothership): void {
    this.motherships.delete(mothership);
    mothership.stop();
  }

  #count(what: string): void {
    this.done.set(what, (this.done.get(what) ?? 0) + 1);
  }
}

const next = (force = '0'): string => `${Number(force) + 1}`;

const acts = [
  'edit',
  'edit',
  'editAndBack',
  'force',
  'remote',
  'remote',
  'rotate',
  'suspend',
  'disable',
  'enlarge',
  'register',
  'delete',
  'create',
  'crash',
  'pause',
  'jump',
] as const;

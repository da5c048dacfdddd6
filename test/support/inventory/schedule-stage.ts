import { abandonAnnotation, abandonedByAnnotation } from '../../../src/api/inventory/names.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { type ComponentKey, keyText } from '../../../src/inventory/key.ts';
import { SimulatedManager } from './simulated-manager.ts';
import type { SimulatedWorld } from './world.ts';

const second = 1000;
const minute = 60 * second;
/** Maximum error of each clock: two clocks differ by at most 5 minutes, and a jump is at most as far. */
const clockErrorMs = 2.5 * minute;
const tooManyBytes = 70_000;

/** The actors of a schedule: users, clusters, and managers that start and stop. */
export class ScheduleStage {
  readonly world: SimulatedWorld;
  leader: SimulatedManager | undefined;
  /** By key: the last accepted remote event, in the order of `world.next()`, and its manager. */
  readonly remotes = new Map<string, { readonly by: SimulatedManager; readonly order: number }>();

  constructor(world: SimulatedWorld) {
    this.world = world;
  }

  begin(faultMs: number): void {
    const { world } = this;
    this.#create('e1');
    if (world.chance(0.3)) this.#create('e2');
    this.#takeOver();
    const actions = world.between(0, 14);
    for (let i = 0; i < actions; i += 1) world.time.after(world.between(0, faultMs - 1), () => this.#act());
  }

  /** Ends all actions. Some entries stay partly disabled or too large. */
  calm(): void {
    const { world } = this;
    world.poisoned = undefined;
    // Clocks may still be wrong.
    if (world.chance(0.4))
      world.time.after(world.between(1, 10) * minute, () => this.leader?.setWall(this.#clockError()));
    for (const { ref, suspended, disabled, bytes } of world.inventory.entries()) {
      if (!suspended && disabled.size === 0 && bytes < tooManyBytes) continue;
      const [isEnabled, isSmall] = [world.chance(0.7), world.chance(0.7)];
      world.edit(ref.uid, ({ spec, metadata }) => {
        spec.suspend = false;
        if (isEnabled) spec.components = {};
        if (isSmall) metadata.labels = {};
      });
    }
  }

  #create(name: string): void {
    const { ref } = this.world.create(name, { a: this.world.between(0, 3) });
    if (this.world.chance(0.01)) this.world.away.add(ref.uid);
  }

  #takeOver(): void {
    this.world.count('takeover');
    this.leader = new SimulatedManager(this.world, this.#clockError());
  }

  #act(): void {
    const { world } = this;
    const entries = world.inventory.entries();
    const entry = entries[world.between(0, entries.length - 1)];
    const components = [...world.components.keys()];
    const component = components[world.between(0, components.length - 1)];
    const act = acts[world.between(0, acts.length - 1)] ?? 'edit';
    if (!component) return;
    world.count(act);
    if (entry) this.#do(act, entry, component);
    else if (act === 'create') this.#create('e1');
  }

  #do(act: (typeof acts)[number], { ref, bytes, content }: Entry, component: string): void {
    const { world, leader } = this;
    const { uid } = ref;
    switch (act) {
      case 'edit':
        this.#setCluster(uid, { a: world.between(0, 3) });
        return;
      case 'editAndBack': {
        const { cluster = {} } = content.spec as { readonly cluster?: Readonly<Record<string, number>> };
        this.#setCluster(uid, { a: 7 });
        world.time.after(world.between(1, 300), () => this.#setCluster(uid, cluster));
        return;
      }
      case 'force':
        world.force(uid, component);
        return;
      case 'remote':
        leader?.later(0, () => this.#remote(leader, { entryUid: uid, component }));
        return;
      case 'rotate':
        this.#rotate(uid);
        return;
      case 'suspend':
        world.edit(uid, ({ spec }) => {
          spec.suspend = !spec.suspend;
        });
        return;
      case 'disable':
        world.edit(uid, ({ spec }) => {
          const isDisabled = spec.components?.[component] !== undefined;
          spec.components = isDisabled ? {} : { ...spec.components, [component]: { enabled: false } };
        });
        return;
      case 'enlarge':
        world.edit(uid, ({ metadata }) => {
          metadata.labels = bytes < tooManyBytes ? { large: 'x'.repeat(tooManyBytes) } : {};
        });
        return;
      case 'register':
        world.register(component);
        return;
      case 'delete':
        this.#delete(ref, component);
        return;
      case 'create':
        if (!world.inventory.entry({ name: 'e2' })) this.#create('e2');
        return;
      case 'poison':
        world.poisoned = world.poisoned === undefined ? uid : undefined;
        return;
      case 'crash':
        this.#crash();
        return;
      case 'pause':
        this.#pause();
        return;
      case 'jump':
        leader?.setWall(this.#clockError());
        return;
    }
  }

  #setCluster(uid: string, cluster: Readonly<Record<string, number>>): void {
    this.world.edit(uid, ({ spec }) => {
      spec.cluster = cluster;
    });
  }

  #remote(leader: SimulatedManager, key: ComponentKey): void {
    const seen = leader.seen(key.entryUid);
    if (!seen || seen.deleting) return;
    this.remotes.set(keyText(key), { by: leader, order: this.world.next() });
    leader.remote(key);
  }

  /** Deletes an entry. Sometimes a component was abandoned before, or the entry is recreated immediately. */
  #delete({ uid, name }: Entry['ref'], component: string): void {
    const { world } = this;
    if (world.chance(0.2)) this.#abandon(uid, component);
    world.edit(uid, ({ metadata }) => {
      metadata.deletionTimestamp ??= '2026-11-21T10:00:00Z';
    });
    if (world.chance(0.2)) world.time.after(world.between(0, 3000), () => this.#abandon(uid, component));
    if (!world.chance(0.5)) return;
    const recreate = (): void => {
      if (!world.inventory.entry({ name })) this.#create(name);
      else if (world.faulty) world.time.after(50, recreate);
    };
    world.time.after(50, recreate);
  }

  #abandon(uid: string, component: string): void {
    const { world } = this;
    if (!world.entry(uid)) return;
    world.count('abandon');
    world.edit(uid, ({ metadata }) => {
      metadata.annotations = {
        ...metadata.annotations,
        [abandonAnnotation(component)]: '',
        [abandonedByAnnotation(component)]: 'alice',
      };
    });
  }

  /** Rotates the kubeconfig of the cluster and forces its producer; some readers run meanwhile. */
  #rotate(uid: string): void {
    const { world } = this;
    for (const { name, makesKubeconfig, usesKubeconfigOf } of world.components.values()) {
      if (makesKubeconfig) world.rotate(uid, world.chance(0.3) ? world.between(0, 10) * second : 0);
      if (makesKubeconfig || (usesKubeconfigOf !== undefined && world.chance(0.7))) world.force(uid, name);
    }
  }

  /** One in five clocks has the maximum error. */
  #clockError(): number {
    const { world } = this;
    if (world.chance(0.2)) return world.chance(0.5) ? clockErrorMs : -clockErrorMs;
    return world.between(-clockErrorMs, clockErrorMs);
  }

  #crash(): void {
    const { world, leader } = this;
    if (!leader) return;
    this.leader = undefined;
    leader.stop();
    world.time.after(world.between(100, 6000), () => this.#takeOver());
  }

  /** Pauses the leader until another manager takes over, then resumes it. */
  #pause(): void {
    const { world, leader } = this;
    if (!leader) return;
    this.leader = undefined;
    leader.pause();
    world.time.after(5000, () => this.#takeOver());
    world.time.after(world.between(4000, 15_000), () => {
      leader.resume();
      world.time.after(world.between(0, 3000), () => leader.stop());
    });
  }
}

const acts = [
  'edit',
  'edit',
  'editAndBack',
  'force',
  'remote',
  'remote',
  'rotate',
  'rotate',
  'suspend',
  'disable',
  'enlarge',
  'register',
  'delete',
  'create',
  'poison',
  'crash',
  'pause',
  'jump',
] as const;

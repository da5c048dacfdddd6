import { SimulatedClock } from '../simulated-clock.ts';
import { type Behavior, InMemoryManager } from './in-memory-manager.ts';
import { MemoryRegistrations, type RegistrationSeed } from './memory-registrations.ts';
import { MemoryInventory } from './memory-stores.ts';

const managers: InMemoryManager[] = [];
afterEach(async () => {
  for (const manager of managers.splice(0)) await manager.stop();
});

/** A running in-memory manager with a simulated clock, which is stopped after the test. */
export async function memoryStage(
  registered: readonly RegistrationSeed[],
  components: Readonly<Record<string, Behavior>> = {},
  random: () => number = () => 0.5,
) {
  const clock = new SimulatedClock();
  const inventory = new MemoryInventory();
  const registrations = new MemoryRegistrations(clock, registered);
  /** Another replica, which has not started. */
  const replica = (of: Readonly<Record<string, Behavior>> = components, name = 'm'): InMemoryManager => {
    const manager = new InMemoryManager({ clock, inventory, registrations, random, components: of, name });
    managers.push(manager);
    return manager;
  };
  const manager = replica().start();
  await clock.advance(1);
  return { clock, inventory, registrations, manager, replica };
}

/** The same with entry `one`, which has been there for a second. */
export async function stageWithEntry(...options: Parameters<typeof memoryStage>) {
  const stage = await memoryStage(...options);
  const { ref } = stage.inventory.create({ name: 'one' });
  await stage.clock.advance(1000);
  return { ...stage, ref };
}

/** Uniform in [0, 1), always the same sequence. */
export function evenRandom(): () => number {
  let n = 0;
  return () => {
    n += 1;
    return (n * 0.618033988749895) % 1;
  };
}

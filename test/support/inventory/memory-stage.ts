import { SimulatedClock } from '../simulated-clock.ts';
import { type Behaviour, InMemoryManager } from './in-memory-manager.ts';
import { MemoryRegistrations, type RegistrationSeed } from './memory-registrations.ts';
import { MemoryInventory } from './memory-stores.ts';

/** One manager over memory that runs, with the clock in the hands of the test. Stop `ship` at the end. */
export async function memoryStage(
  registered: readonly RegistrationSeed[],
  components: Readonly<Record<string, Behaviour>> = {},
  random: () => number = () => 0.5,
) {
  const clock = new SimulatedClock();
  const inventory = new MemoryInventory();
  const registrations = new MemoryRegistrations(clock, registered);
  const ship = new InMemoryManager({ clock, inventory, registrations, random, components }).start();
  await clock.advance(1);
  return { clock, inventory, registrations, ship };
}

/** Uniform in [0, 1), the same sequence every time. */
export function evenRandom(): () => number {
  let n = 0;
  return () => {
    n += 1;
    return (n * 0.618033988749895) % 1;
  };
}

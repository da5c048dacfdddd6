import { accessControllers } from './access/controllers.ts';
import { bindingControllers } from './binding/controllers.ts';
import { certificateControllers } from './certificates/controllers.ts';
import type { Runnable } from './engine/member.ts';
import { inventoryControllers } from './inventory/controllers.ts';

/** What the loops of each part need; undefined for what does not run. */
interface Deps {
  readonly access: Parameters<typeof accessControllers>[0] | undefined;
  readonly certificates: Parameters<typeof certificateControllers>[0] | undefined;
  readonly binding: Parameters<typeof bindingControllers>[0] | undefined;
  readonly inventory: Parameters<typeof inventoryControllers>[0] | undefined;
}

/** Every loop of the system, by half, in the order in which they start. */
export function controllers(deps: Deps): Readonly<Record<keyof Deps, readonly Runnable[]>> {
  return {
    // Templates and requests of both kinds: who gets into which pod, until when.
    access: deps.access ? accessControllers(deps.access) : [],
    // The serving certificate. After the others: closing access on time must not wait for it.
    certificates: deps.certificates ? certificateControllers(deps.certificates) : [],
    // Providers whose APIs are bound in this cluster. Each provider session adds loops of its own while it lasts.
    binding: deps.binding ? bindingControllers(deps.binding) : [],
    // Components of the clusters in the inventory: run when what they depend on changes.
    inventory: deps.inventory ? inventoryControllers(deps.inventory) : [],
  };
}

import type { Runnable } from '../engine/member.ts';
import type { Mothership } from './mothership/mothership.ts';

/** The loops of the inventory half, in the order in which they start. */
export function inventoryControllers({ mothership }: { readonly mothership: Mothership }): Runnable[] {
  return mothership.controllers();
}

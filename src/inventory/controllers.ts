import type { Runnable } from '../engine/member.ts';
import type { InventoryDeps } from './deps.ts';

/** The loops of the inventory half, in the order in which they start. */
export function inventoryControllers(_deps: InventoryDeps): Runnable[] {
  return [];
}

import type { Kind } from '../schema/kind.ts';
import { clusterInventoryKind } from './cluster-inventory.ts';
import { componentReconcilerKind } from './component-reconciler.ts';
import { reconcileRunKind } from './reconcile-run.ts';

/** The kinds of the inventory half, in the order in which their CRDs are installed. */
export const inventoryKinds: readonly Kind[] = [componentReconcilerKind, clusterInventoryKind, reconcileRunKind];

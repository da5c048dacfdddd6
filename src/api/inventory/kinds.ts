import type { Kind } from '../schema/kind.ts';
import { clusterInventoryKind } from './cluster-inventory.ts';
import { componentReconcilerKind } from './component-reconciler.ts';
import { reconcileRunKind } from './reconcile-run.ts';

/** The kinds of the inventory feature, in the installation order of their CRDs. */
export const inventoryKinds: readonly Kind[] = [componentReconcilerKind, clusterInventoryKind, reconcileRunKind];

import type { Kind } from '../schema/kind.ts';
import { clusterInventoryKind } from './cluster-inventory.ts';
import { componentReconcilerKind } from './component-reconciler.ts';
import { reconcileRunKind } from './reconcile-run.ts';

/** The CRDs of the chart are generated from them, one file for each. */
export const inventoryKinds: readonly Kind[] = [componentReconcilerKind, clusterInventoryKind, reconcileRunKind];

import { InventoryStage } from '../support/inventory/stage.ts';
import { stopSharedPlane } from '../support/plane.ts';
import { benchmarkOn } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { convergenceRound } from './workloads/inventory-convergence.ts';
import { fleetRound } from './workloads/inventory-fleet.ts';

/** N entries of SIZE bytes: what they cost in memory, and how long a change of one of them takes to reach its component; then how soon things come right. */
const count = numberFrom('N', 1000);
const changes = numberFrom('LONE', 200);
const size = numberFrom('SIZE', 6000);

await benchmarkOn(
  'inventory',
  async (stage: InventoryStage) => ({
    ...(await fleetRound(stage, { count, changes, size })),
    ...(await convergenceRound(stage)),
  }),
  { rounds: 1, open: () => InventoryStage.open(), end: stopSharedPlane },
);

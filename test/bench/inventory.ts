import { InventoryStage } from '../support/inventory/stage.ts';
import { stopSharedPlane } from '../support/plane.ts';
import { benchmarkOn } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { inventoryRound } from './workloads/inventory.ts';

/** N entries of SIZE bytes: what they cost in memory, and how long a change of one of them takes to reach its component. */
const count = numberFrom('N', 1000);
const changes = numberFrom('LONE', 200);
const size = numberFrom('SIZE', 6000);

await benchmarkOn('inventory', (stage: InventoryStage) => inventoryRound(stage, { count, changes, size }), {
  rounds: 1,
  open: () => InventoryStage.open(),
  end: stopSharedPlane,
});

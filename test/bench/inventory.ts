import { InventoryStage } from '../support/inventory/stage.ts';
import { stopSharedPlane } from '../support/plane.ts';
import { benchmarkOn } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { convergenceRound } from './workloads/inventory-convergence.ts';
import { fleetRound } from './workloads/inventory-fleet.ts';

/** How soon things come right; then N entries of SIZE bytes: what they cost in memory, and how long a change of one of them takes to reach its component. */
const count = numberFrom('N', 1000);
const changes = numberFrom('LONE', 200);
const size = numberFrom('SIZE', 6000);

await benchmarkOn(
  'inventory',
  async ({ stage }) => ({
    ...(await convergenceRound(stage)),
    ...(await fleetRound(stage, { count, changes, size })),
  }),
  {
    rounds: 1,
    open: async () => {
      const stage = await InventoryStage.open();
      // Taking thousands of entries out one by one takes longer than all the rest; most often they end with their plane.
      const close = () => (process.env['DRAWBRIDGE_SANDBOX'] ? stage.close() : stage.server.stop());
      return { stage, close };
    },
    end: stopSharedPlane,
  },
);

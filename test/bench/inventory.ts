import { InventoryStage } from '../support/inventory/stage.ts';
import { stopSharedPlane } from '../support/plane.ts';
import { benchmarkOn } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { convergenceRound } from './workloads/inventory-convergence.ts';
import { fleetRound } from './workloads/inventory-fleet.ts';

/** The time until entries converge; then, for N entries of SIZE bytes, their memory and the time from a change to the call of its component. */
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
      // Deleting thousands of entries takes longer than the benchmark; usually their plane is deleted instead.
      const close = () => (process.env['DRAWBRIDGE_SANDBOX'] ? stage.close() : stage.server.stop());
      return { stage, close };
    },
    end: stopSharedPlane,
  },
);

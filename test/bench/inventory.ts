import { registerChain } from '../support/inventory/chain.ts';
import { writesOfUnreadField, writesToOneEntry } from '../support/inventory/consolidation.ts';
import { killInFlight } from '../support/inventory/killed.ts';
import { InventoryStage } from '../support/inventory/stage.ts';
import { percentile } from '../support/percentile.ts';
import { stopSharedPlane } from '../support/plane.ts';
import { benchmarkOn } from './support/command.ts';
import { type Figures, numberFrom } from './support/figures.ts';
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

/** Measures the time until entries converge, and the number of runs. */
async function convergenceRound(stage: InventoryStage): Promise<Figures> {
  await registerChain(stage, ['a', 'b', 'c', 'd', 'e'], 100);
  // The first entry waits for the proof that the webhook authorizes writes.
  await untilReady(stage, 'warm');
  const chains: number[] = [];
  for (let i = 0; i < 5; i++) chains.push(await untilReady(stage, `chain-${i}`));
  await stage.clear();
  const { runs, allowed } = await writesToOneEntry(stage, { writes: 300, runMs: 200 });
  await stage.clear();
  const unreadRuns = await writesOfUnreadField(stage, 1000);
  await stage.clear();
  const killed = await killInFlight(stage, 40);
  await stage.clear();
  return {
    chainMs: percentile(chains, 0.5),
    consolidatedRuns: runs,
    consolidatedOverAllowed: Math.max(0, runs - allowed),
    unreadRuns,
    killedBackMs: killed.backMs,
    killedTwice: killed.called.length - new Set(killed.called).size,
  };
}

/** Milliseconds from the creation of an entry until it is Ready. */
async function untilReady(stage: InventoryStage, name: string): Promise<number> {
  const began = performance.now();
  await stage.entry(name);
  await stage.ready(name);
  return performance.now() - began;
}

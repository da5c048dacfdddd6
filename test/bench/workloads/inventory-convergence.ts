import { registerChain, untilReady } from '../../support/inventory/chain.ts';
import { writesOfUnreadField, writesToOneEntry } from '../../support/inventory/consolidation.ts';
import { killInFlight } from '../../support/inventory/killed.ts';
import type { InventoryStage } from '../../support/inventory/stage.ts';
import { percentile } from '../../support/percentile.ts';
import type { Figures } from '../support/figures.ts';

/** Measures the time until entries converge, and the number of runs. */
export async function convergenceRound(stage: InventoryStage): Promise<Figures> {
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

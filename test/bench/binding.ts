import { stopBindingPlanes } from '../support/binding/planes.ts';
import { BindingBenchStage } from './support/binding-stage.ts';
import { benchmarkOn } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { syncRound } from './workloads/binding.ts';
import { loneRound } from './workloads/binding-lone.ts';

/** A konnector between two planes: N creates, status writes, and deletes, each relative to its floor; then LONE objects in sequence. */
const count = numberFrom('N', 1000);
const lone = numberFrom('LONE', 60);
let warm = false;

await benchmarkOn(
  'binding',
  async (stage: BindingBenchStage) => {
    if (!warm) await syncRound(stage, 100);
    warm = true;
    return { ...(await syncRound(stage, count)), ...(await loneRound(stage, lone)) };
  },
  {
    rounds: 3,
    open: BindingBenchStage.open,
    end: stopBindingPlanes,
  },
);

import { setTimeout as sleep } from 'node:timers/promises';
import { stopBindingPlanes } from '../support/binding/planes.ts';
import { BindingBenchStage } from './support/binding-stage.ts';
import { benchmarkOn } from './support/command.ts';
import { numberFrom } from './support/figures.ts';

/** A konnector with one binding and one object, while nothing changes for SECONDS. */
const seconds = numberFrom('SECONDS', 600);
/** Until Node has compiled and collected what the start left behind: in the first half minute, that costs more than rest. */
const warmUpMs = 60_000;

await benchmarkOn(
  'rest',
  async (stage: BindingBenchStage) => {
    await stage.idle();
    await sleep(warmUpMs);
    const since = stage.mark();
    const cpuBefore = await stage.cpuMs();
    await sleep(seconds * 1000);
    const cpuMsAMinute = ((await stage.cpuMs()) - cpuBefore) / (seconds / 60);
    const aMinute = (calls: number): number => calls / (seconds / 60);
    const provider = stage.callsAtRest('provider', since);
    const consumer = stage.callsAtRest('consumer', since);
    return {
      providerWatchesAMinute: aMinute(provider.watches),
      providerReviewsAMinute: aMinute(provider.reviews),
      providerOthersAMinute: aMinute(provider.others),
      consumerWatchesAMinute: aMinute(consumer.watches),
      consumerReviewsAMinute: aMinute(consumer.reviews),
      consumerOthersAMinute: aMinute(consumer.others),
      cpuMsAMinute,
    };
  },
  {
    rounds: 1,
    open: BindingBenchStage.open,
    end: stopBindingPlanes,
  },
);

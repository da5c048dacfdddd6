import { benchmark } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { burstRound, spreadRound } from './workloads/expiry.ts';

/** N grants that expire over SPREAD seconds: from each deadline until its RoleBinding is gone. BURST=1: all within one second. */
const count = numberFrom('N', 200);
const spreadMs = numberFrom('SPREAD', 10) * 1000;
const durationS = numberFrom('DURATION', process.env['BURST'] ? 30 : 20);

await (process.env['BURST']
  ? benchmark('expiry-burst', (stage) => burstRound(stage, count, durationS))
  : benchmark('expiry', (stage) => spreadRound(stage, count, spreadMs, durationS)));

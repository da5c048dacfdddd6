import { benchmark } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { burstOfRequests, burstRound } from './workloads/burst.ts';

/** N concurrent requests, compared with the same writes in a bare loop. PODS=slow: pods take 3 s, which the ratio excludes. */
const count = numberFrom('N', 200);
const template = process.env['PODS'] === 'slow' ? 'slow' : 'instant';
let warm = false;

await benchmark(`burst-${template}`, async (stage) => {
  if (!warm) await burstOfRequests(stage, 20, 'instant').then(() => stage.clear());
  warm = true;
  return burstRound(stage, count, template);
});

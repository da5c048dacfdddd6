import { benchmark } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { burstOf, burstRound } from './workloads/burst.ts';

/**
 * N concurrent requests, compared with the same writes in a bare loop. PODS=slow: pods take 3 s, which the ratio excludes. APPROVALS=1: N
 * concurrent votes on requests that wait for them.
 */
const count = numberFrom('N', 200);
const instant = process.env['APPROVALS'] ? 'instant-approved' : 'instant';
const template = process.env['PODS'] === 'slow' ? 'slow' : instant;
let warm = false;

await benchmark(`burst-${template}`, async (stage) => {
  if (!warm) await burstOf(stage, 20, instant).then(() => stage.clear());
  warm = true;
  return burstRound(stage, count, template);
});

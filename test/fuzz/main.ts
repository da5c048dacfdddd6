import fc from 'fast-check';
import { Judge } from './judge.ts';
import { fuzzCase } from './reviews.ts';

/** `make fuzz`: RUNS inputs, from SEED or else a new seed. */
const runs = Number(process.env['RUNS'] || 100_000);
const seed = Number(process.env['SEED'] || Date.now() % 2 ** 31);
const everyMs = 5_000;

for (const fault of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(fault, (error: unknown) => {
    console.error(`${fault}; run it again with SEED=${seed}:`, error);
    process.exit(1);
  });
}

const judge = new Judge();
const { tally } = judge;
const startMs = performance.now();
const perSecond = (): number => Math.round(tally.inputs / ((performance.now() - startMs) / 1000));
let toldMs = startMs;

console.log(`${runs} inputs to the admission webhooks, beside a reference policy; SEED=${seed}`);
const result = await fc.check(
  fc.asyncProperty(fuzzCase, async (one) => {
    await judge.judge(one);
    if (performance.now() - toldMs < everyMs) return;
    toldMs = performance.now();
    console.log(`${tally.inputs} of ${runs}, ${perSecond()}/s`);
  }),
  { seed, numRuns: runs },
);
if (result.failed) {
  console.error(fc.defaultReportMessage(result));
  console.error(`failed; run it again with SEED=${seed}`);
  process.exit(1);
}
const { inputs, malformed, allowed, refused, stricter, reasons } = tally;
console.log(`${inputs} inputs, ${perSecond()}/s: none without an answer, none allowed that must be refused`);
console.log(
  `${allowed} allowed, ${refused} denied by both, ${stricter} denied only by the webhooks, ${malformed} were no review`,
);
const counts = [...reasons].sort(([, a], [, b]) => b - a).map(([reason, count]) => `${reason} ${count}`);
console.log(`reasons of the reference policy: ${counts.join(', ')}`);

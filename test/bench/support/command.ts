import { fileURLToPath } from 'node:url';
import { attachPlane, type Plane, startPlane } from '../../../sandbox/plane.ts';
import { type Figures, numberFrom, report, rounded } from './figures.ts';
import { BenchStage } from './stage.ts';

const crds = fileURLToPath(new URL('../../../charts/drawbridge/files/crds', import.meta.url));

/** A fresh plane for one benchmark, or the running one whose folder DRAWBRIDGE_SANDBOX names. */
export function benchPlane(): Promise<Plane> {
  const directory = process.env['DRAWBRIDGE_SANDBOX'];
  return directory ? attachPlane(directory) : startPlane({ crds: [crds], onProgress: (line) => console.error(line) });
}

/** Runs ROUNDS rounds of a workload on its own stage, reports them, and ends the process. */
export async function benchmark(
  name: string,
  round: (stage: BenchStage) => Promise<Figures>,
  { rounds = 3 }: { readonly rounds?: number } = {},
): Promise<never> {
  const plane = await benchPlane();
  return benchmarkOn(name, round, { rounds, open: () => BenchStage.open(plane), end: () => plane.stop() });
}

/** The same on any stage. It always calls `end` at the end. */
export async function benchmarkOn<Stage extends { close(): Promise<void> }>(
  name: string,
  round: (stage: Stage) => Promise<Figures>,
  options: { readonly rounds: number; readonly open: () => Promise<Stage>; readonly end: () => Promise<void> },
): Promise<never> {
  let code = 1;
  try {
    const stage = await options.open();
    const results: Figures[] = [];
    for (let left = numberFrom('ROUNDS', options.rounds); left > 0; left--) {
      const figures = await round(stage);
      console.error(JSON.stringify(rounded(figures)));
      results.push(figures);
    }
    await stage.close();
    code = await report(name, results);
  } catch (error) {
    console.error(error);
  } finally {
    await options.end();
  }
  process.exit(code);
}

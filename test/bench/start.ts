import { ServerProcess } from '../../sandbox/server-process.ts';
import { benchPlane } from './support/command.ts';
import { type Figures, numberFrom, report } from './support/figures.ts';
import { cpuMs } from './support/stage.ts';

/** Time from the server's start to a successful /readyz, with an empty cluster. Median of ROUNDS starts. */
const plane = await benchPlane();
const rounds: Figures[] = [];
let installation: ServerProcess['installation'] | undefined;
for (let left = numberFrom('ROUNDS', 9); left > 0; left--) {
  const start = performance.now();
  // The first start installs; it is not counted.
  const server = await ServerProcess.spawn(plane, installation ? { installation } : {});
  await server.whenReady();
  const readyMs = performance.now() - start;
  if (installation) rounds.push({ readyMs, cpuMs: await cpuMs(server.pid) });
  else left++;
  installation ??= server.installation;
  await server.stop();
}
const code = await report('start', rounds);
await plane.stop();
process.exit(code);

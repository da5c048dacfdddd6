import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayStage } from '../support/gateway-stage.ts';
import { Person } from '../support/person.ts';
import { benchmarkOn } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { echo, idleAndEnd, type SessionsBench, throughput } from './workloads/sessions.ts';

/** N idle sessions through the gateway and their end; KEYS keystrokes and MB of output in turn directly, through the gateway, and recorded. */
const count = numberFrom('N', 200);
const strokes = numberFrom('KEYS', 300);
const bytes = numberFrom('MB', 100) * 1024 * 1024;

let stage: GatewayStage | undefined;

await benchmarkOn(
  'sessions',
  async (bench: SessionsBench & { close(): Promise<void> }) => ({
    ...(await idleAndEnd(bench.stage, count)),
    ...(await echo(bench, strokes)),
    ...(await throughput(bench, bytes)),
  }),
  {
    rounds: 3,
    async open() {
      stage = await GatewayStage.open((directory) => {
        const folder = join(directory, 'recordings');
        mkdirSync(folder, { mode: 0o700 });
        return [`--recordings=${folder}`];
      }, []);
      const admin = await Person.of(stage.plane, 'root', ['system:masters']);
      return { stage, admin, close: () => Promise.resolve() };
    },
    end: async () => stage?.close(),
  },
);

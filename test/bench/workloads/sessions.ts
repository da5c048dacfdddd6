import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../../../sandbox/build/run.ts';
import { grantProxyPath } from '../../../src/api/gateway/names.ts';
import type { GatewayStage, StagedGrant } from '../../support/gateway-stage.ts';
import { percentile } from '../../support/percentile.ts';
import type { Person } from '../../support/person.ts';
import type { RawStream } from '../../support/raw-stream.ts';
import { type Figures, median } from '../support/figures.ts';
import { cpuMs } from '../support/stage.ts';

const MiB = 1024 * 1024;
/** A grant has at most 64 sessions. */
const SESSIONS_A_GRANT = 50;

/** The gateway, and an administrator who calls the API server directly. */
export interface SessionsBench {
  readonly stage: GatewayStage;
  readonly admin: Person;
}

const recorded = { over: { session: { via: 'Gateway', record: 'Required' } } } as const;

function exec(stage: GatewayStage, who: Person, prefix: string, command: readonly string[], terminal: boolean) {
  const query = new URLSearchParams({ stdin: 'true', stdout: 'true', ...(terminal ? { tty: 'true' } : {}) });
  for (const word of command) query.append('command', word);
  return who.stream(`${prefix}/api/v1/namespaces/${stage.namespace}/pods/payments/exec?${query}`);
}

const prefixOf = (stage: GatewayStage, grant: StagedGrant): string => grantProxyPath(stage.namespace, grant.name);

/**
 * Memory of `count` idle sessions, and the time from their common deadline until the client has the end of each stream. `lastsMs`: how long
 * the grants last; all sessions must open before.
 */
export async function idleAndEnd(
  stage: GatewayStage,
  count: number,
  lastsMs: number = 20_000 + 20 * count,
): Promise<Figures> {
  const before = await lowestRss(stage);
  const grants = await Promise.all(
    Array.from({ length: Math.ceil(count / SESSIONS_A_GRANT) }, () => stage.grant({ lastsMs })),
  );
  const streams: RawStream[] = [];
  for (let begun = 0; begun < count; begun++) {
    const grant = grants[begun % grants.length] as StagedGrant;
    streams.push((await exec(stage, stage.alice, prefixOf(stage, grant), ['cat'], true)).read());
  }
  const idle = await lowestRss(stage);
  const deadlines = grants.map(({ endMs }) => endMs);
  const ends = await Promise.all(
    streams.map(async (stream, index) => {
      await once(stream.socket, 'end');
      return Date.now() - (deadlines[index % grants.length] ?? Number.NaN);
    }),
  );
  return {
    idleMb: (idle - before) / MiB,
    endP50Ms: percentile(ends, 0.5),
    endP99Ms: percentile(ends, 0.99),
    early: ends.filter((ms) => ms < 0).length,
    withoutReason: streams.filter(({ received }) => !/access ended at .*: Expired/.test(received)).length,
  };
}

/** The time from a keystroke until its echo, in turn: direct, through the gateway, and recorded. */
export async function echo({ stage, admin }: SessionsBench, strokes: number): Promise<Figures> {
  const ways = await Promise.all([
    exec(stage, admin, '', ['cat'], true),
    exec(stage, stage.alice, prefixOf(stage, await stage.grant()), ['cat'], true),
    exec(stage, stage.alice, prefixOf(stage, await stage.grant(recorded)), ['cat'], true),
  ]);
  const times: number[][] = ways.map(() => []);
  for (const stream of ways) stream.read();
  await sleep(500);
  for (let stroke = 0; stroke < strokes; stroke++) {
    for (const [way, stream] of ways.entries()) {
      const startMs = performance.now();
      const answer = once(stream.socket, 'data');
      stream.send('\0x');
      await answer;
      times[way]?.push(performance.now() - startMs);
      await sleep(2);
    }
  }
  for (const { socket } of ways) socket.destroy();
  const [direct = 0, gateway = 0, recording = 0] = times.map(median);
  return { echoDirectMs: direct, echoOverDirectMs: gateway - direct, echoRecordedOverMs: recording - gateway };
}

/** The rate of `bytes` of text from the pod to kubectl, in turn: direct, through the gateway, and recorded. */
export async function throughput({ stage }: SessionsBench, bytes: number): Promise<Figures> {
  const command = ['sh', '-c', `yes 'a line of the log of a server, about as long as they are' | head -c ${bytes}`];
  const rate = async (kubeconfig: string, via: readonly string[]) => {
    const cpuBefore = await cpuMs(stage.gateway.pid);
    const startMs = performance.now();
    const { binaries, directory } = stage.plane;
    const args = [binaries.kubectl, ...via, 'exec', 'payments', '--', ...command];
    const env = { PATH: process.env['PATH'], HOME: directory, KUBECONFIG: kubeconfig };
    const { stdout, stderr } = await run('bash', ['-c', '"$@" | wc -c', 'bash', ...args], { env });
    const seconds = (performance.now() - startMs) / 1000;
    if (stderr !== '') console.error(stderr);
    return {
      mbPerSecond: bytes / MiB / seconds,
      lost: bytes - Number(stdout),
      cpuMsAMb: ((await cpuMs(stage.gateway.pid)) - cpuBefore) / (bytes / MiB),
    };
  };
  const direct = await rate(stage.plane.adminKubeconfig, ['-n', stage.namespace]);
  const gateway = await rate(stage.alice.kubeconfig, (await stage.grant()).via);
  const recording = await rate(stage.alice.kubeconfig, (await stage.grant(recorded)).via);
  return {
    directMbPerSecond: direct.mbPerSecond,
    rateOverDirect: gateway.mbPerSecond / direct.mbPerSecond,
    rateRecordedOver: recording.mbPerSecond / gateway.mbPerSecond,
    cpuMsAMb: gateway.cpuMsAMb,
    cpuRecordedMsAMb: recording.cpuMsAMb,
    lostBytes: direct.lost + gateway.lost + recording.lost,
  };
}

/** The lowest of ten samples of resident memory, bytes. */
async function lowestRss({ gateway }: GatewayStage): Promise<number> {
  const samples: number[] = [];
  for (let sample = 0; sample < 10; sample++) {
    const status = await readFile(`/proc/${gateway.pid}/status`, 'utf8');
    samples.push(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024);
    await sleep(200);
  }
  return Math.min(...samples);
}

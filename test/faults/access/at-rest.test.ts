import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartStage } from '../../support/chart-stage.ts';

/** Access and the gateway, two replicas each. */
const linesASecond = 2;
const measuredMs = Number(process.env['DRAWBRIDGE_REST_SECONDS'] ?? 60) * 1000;
/** The shortest time after which a replica opens a healthy watch anew; each is two lines, for its start and for its end. */
const watchSeconds = 300;

interface Line {
  readonly user?: { readonly username?: string };
  readonly verb?: string;
  readonly stage?: string;
  readonly objectRef?: { readonly resource?: string };
}

describe('access and the gateway at rest', () => {
  let stage: ChartStage;

  before(async function () {
    this.timeout(240_000);
    stage = await ChartStage.open();
    await stage.install('own', { features: { gateway: true } });
    await stage.kubelet.switchService('drawbridge-gateway');
  });
  after(() => stage?.close());

  const lines = async (): Promise<Line[]> => {
    const text = await readFile(join(stage.plane.directory, 'audit.log'), 'utf8');
    const all = text.slice(0, text.lastIndexOf('\n')).split('\n');
    return all.map((line): Line => JSON.parse(line)).filter(({ user }) => user?.username?.startsWith(stage.serverUser));
  };

  it(`write at most ${linesASecond} lines a second into the audit log of the API server`, async function () {
    this.timeout(120_000 + measuredMs);
    await sleep(20_000);
    const before = await lines();
    await sleep(measuredMs);
    const during = (await lines()).slice(before.length);
    const counts = new Map<string, number>();
    for (const { verb, objectRef } of during) {
      const call = `${verb} ${objectRef?.resource}`;
      counts.set(call, (counts.get(call) ?? 0) + 1);
    }
    const started = (of: readonly Line[], name: string): number =>
      of.filter(({ verb, stage: at }) => verb === 'watch' && at === name).length;
    const open = started(before, 'ResponseStarted') - started(before, 'ResponseComplete');
    const withoutWatches = during.filter(({ verb }) => verb !== 'watch').length / (measuredMs / 1000);
    const watches = (open * 2) / watchSeconds;
    console.log(
      `      ${(during.length / (measuredMs / 1000)).toFixed(2)} lines a second in ${measuredMs / 1000} s:`,
      JSON.stringify([...counts]),
    );
    console.log(`      ${withoutWatches.toFixed(2)} of other calls, and ${watches.toFixed(2)} of ${open} watches`);
    assert.ok(withoutWatches + watches <= linesASecond, `${withoutWatches} + ${watches}`);
    assert.deepEqual(
      during.filter(({ verb, objectRef }) => verb === 'get' && objectRef?.resource === 'leases'),
      [],
    );
  });
});

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ChartStage } from '../../support/chart-stage.ts';
import { linesAtRest } from '../../support/lines-at-rest.ts';

describe('access and the gateway at rest, with two replicas each', () => {
  let stage: ChartStage;

  before(async function () {
    this.timeout(240_000);
    stage = await ChartStage.open();
    await stage.install('own', { features: { gateway: true } });
    await stage.kubelet.switchService('drawbridge-gateway');
  });
  after(() => stage?.close());

  it('write at most 2 lines a second into the audit log of the API server, and read no Lease', async function () {
    this.timeout(180_000);
    const log = () => readFile(join(stage.plane.directory, 'audit.log'), 'utf8');
    const { linesASecond, counts, summary } = await linesAtRest(log, (user) => user.startsWith(stage.serverUser));
    console.log(`      ${summary}`);
    assert.ok(linesASecond <= 2, summary);
    assert.equal(counts.get('get leases'), undefined);
  });
});

import assert from 'node:assert/strict';
import { BenchStage } from '../../bench/support/stage.ts';
import { burstOfRequests } from '../../bench/workloads/burst.ts';
import { spreadExpiries } from '../../bench/workloads/expiry.ts';
import { stopIdleServer } from '../../support/access-stage.ts';
import { sharedPlane } from '../../support/plane.ts';

const count = 200;

/** Checks completeness on any machine; `make bench BENCH=burst` measures the speed. */
describe(`${count} requests at once`, () => {
  let stage: BenchStage;

  before(async function () {
    this.timeout(180_000);
    const plane = await sharedPlane();
    await stopIdleServer(plane);
    stage = await BenchStage.open(plane);
  });

  after(async function () {
    this.timeout(60_000);
    await stage?.close();
  });

  it('all become Ready, with five writes each', async function () {
    this.timeout(240_000);
    const mark = stage.plane.auditLog.mark();
    await burstOfRequests(stage, count, 'instant');
    const { writes } = stage.calls(mark);
    await stage.clear();
    assert.ok(writes <= 5.5 * count, `${writes} writes`);
  });

  it('all end, none before its deadline', async function () {
    this.timeout(240_000);
    const { lateMs } = await spreadExpiries(stage, count, 1_000, 25);
    assert.equal(lateMs.length, count);
    assert.ok(Math.min(...lateMs) >= 0, `the first one ended ${-Math.min(...lateMs)} ms early`);
  });
});

import assert from 'node:assert/strict';
import { idleAndEnd } from '../../bench/workloads/sessions.ts';
import { GatewayStage } from '../../support/gateway-stage.ts';

describe('200 sessions at once', () => {
  let stage: GatewayStage;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
  });
  after(() => stage?.close());

  it('stay until their common deadline, and then each says why it ends', async function () {
    this.timeout(150_000);
    const { idleMb = Number.NaN, early, withoutReason, endP99Ms = Number.NaN } = await idleAndEnd(stage, 200, 45_000);
    assert.deepEqual([early, withoutReason], [0, 0]);
    assert.ok(endP99Ms < 2_000, `${endP99Ms} ms`);
    assert.ok(idleMb < 90, `${idleMb} MB`);
  });
});

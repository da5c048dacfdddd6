import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { linesAtRest } from '../support/lines-at-rest.ts';
import { installLimitMs, NodeStage } from '../support/node-stage.ts';

describe('access and the gateway at rest on a node, with two replicas each', () => {
  let stage: NodeStage;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    await stage.deleteRequests();
  });

  it('write at most 2 lines a second into the audit log of the API server, and read no Lease', async function () {
    this.timeout(180_000);
    const log = (): Promise<string> => readFile(join(stage.node.directory, 'audit.log'), 'utf8');
    const accounts = ['drawbridge', 'drawbridge-gateway'].map(
      (name) => `system:serviceaccount:${stage.system}:${name}`,
    );
    const { linesASecond, counts, summary } = await linesAtRest(log, (user) => accounts.includes(user));
    console.log(`      ${summary}`);
    assert.ok(linesASecond <= 2, summary);
    assert.ok(counts.size > 0, 'the accounts write no line, not even for their Leases');
    assert.equal(counts.get('get leases'), undefined);
  });
});

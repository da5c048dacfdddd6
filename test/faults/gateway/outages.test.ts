import assert from 'node:assert/strict';
import { GatewayProcess } from '../../../sandbox/gateway-process.ts';
import type { Terminal } from '../../../sandbox/terminal.ts';
import { until } from '../../../sandbox/wait.ts';
import { gatewayApiService } from '../../../src/api/gateway/names.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';

describe('while a part of the way through the gateway is away', () => {
  let stage: GatewayStage;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
  });
  after(() => stage?.close());

  const shellOf = async (grant: StagedGrant): Promise<Terminal> => {
    const shell = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
    await shell.shows(/[$#] /);
    return shell;
  };
  const startAgain = async (): Promise<void> => {
    const { plane, namespace } = stage;
    stage.gateway = await GatewayProcess.start(plane, { namespace });
  };
  /** Resolves once a session of the grant can be opened again. */
  const works = (grant: StagedGrant): Promise<unknown> =>
    until(
      'a session to open',
      async () => {
        const args = [...grant.via, 'exec', 'payments', '--', 'echo', 'works'];
        return (await stage.alice.kubectl(args, { reject: false })).stdout === 'works\n';
      },
      { timeoutMs: 30_000 },
    );

  it('a replica that is killed ends its sessions with exit code 1, and a new one works after it is back', async () => {
    const grant = await stage.grant();
    const shell = await shellOf(grant);
    await stage.gateway.kill();
    assert.equal(await shell.exit(), 1);
    assert.match(shell.text, /error: .*close 1006/);
    await startAgain();
    await works(grant);
  });

  it('a replica that stops says so in its sessions and logs, with exit code 1', async () => {
    const grant = await stage.grant();
    const shell = await shellOf(grant);
    const log = stage.terminal(stage.alice, [...grant.via, 'logs', '-f', 'payments']);
    await log.shows(/started/);
    await stage.gateway.stop();
    assert.deepEqual([await shell.exit(), await log.exit()], [1, 1]);
    const reason = /the session ended at \d\d:\d\d UTC: Restarting; run the command again/;
    assert.match(shell.text, new RegExp(`\\[drawbridge\\] ${reason.source}`));
    assert.match(shell.text, new RegExp(`error: ${reason.source}`));
    assert.match(log.text, reason);
    await startAgain();
    await works(grant);
  });

  it('an API server that restarts ends the sessions, which the journal has, and new ones work without a restart of the gateway', async () => {
    const grant = await stage.grant();
    const shell = await shellOf(grant);
    await stage.plane.component('kube-apiserver').restart();
    assert.equal(await shell.exit(), 1);
    assert.match(shell.text, /error: .*close 1006/);
    const { pid } = stage.gateway;
    await stage.ended(grant);
    await works(grant);
    assert.deepEqual([stage.gateway.pid, stage.gateway.running], [pid, true]);
  });

  it('without the gateway, kubectl lists the other kinds, and a deleted namespace stays until the gateway is back', async function () {
    this.timeout(300_000);
    const { plane } = stage;
    const name = 'deleted-meanwhile';
    await plane.kubectl(['create', 'namespace', name]);
    await stage.gateway.kill();
    await plane.kubectl([
      'wait',
      '--for=condition=Available=False',
      `apiservice/${gatewayApiService}`,
      // The API server looks every 30 s.
      '--timeout=90s',
    ]);
    const all = await plane.kubectl(['get', 'all', '-n', stage.namespace]);
    assert.match(all.stdout, /pod\/payments/);
    await plane.kubectl(['delete', 'namespace', name, '--wait=false']);
    await plane.kubectl([
      'wait',
      '--for=condition=NamespaceDeletionDiscoveryFailure',
      `namespace/${name}`,
      '--timeout=60s',
    ]);
    await startAgain();
    await plane.kubectl(['wait', '--for=delete', `namespace/${name}`, '--timeout=120s']);
  });
});

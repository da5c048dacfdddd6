import assert from 'node:assert/strict';
import { execRequest } from '../support/access-requests.ts';
import { installLimitMs, NodeStage } from '../support/node-stage.ts';
import { Prometheus, quickRules, type ScrapedPods } from '../support/prometheus.ts';

const job = 'drawbridge-metrics';

describe('a Prometheus with the alerts, which scrapes the Pods of access on a real node', function () {
  this.timeout(180_000);
  let stage: NodeStage;
  let prometheus: Prometheus;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    prometheus = await Prometheus.start({ [job]: await pods() }, ['access', 'server'].map(quickRules));
  });
  after(async () => {
    await prometheus?.stop();
    await scale(2);
    await stage.rolledOut();
    await stage.deleteRequests();
  });

  it('has no alert of a healthy installation', async () => {
    for (const alert of [
      'DrawbridgeDown',
      'DrawbridgeNoLeader',
      'DrawbridgePoliciesNotInForce',
      'DrawbridgeGrantPastExpiry',
    ])
      await prometheus.alertIs('inactive', alert);
    const firing = (await prometheus.rules()).filter(({ state }) => state === 'firing');
    assert.deepEqual(firing, []);
  });

  it('fires DrawbridgeEmergencyUsed', async () => {
    await stage.sh(
      'kubectl patch execaccesstemplate payments-exec -n payments --type=merge -p ' +
        `'{"spec":{"accessConfig":{"emergency":{"groups":["devs"],"maxDuration":"1m","reviewWithin":"1h"}}}}'`,
    );
    await stage.templatesReady();
    const reason = 'the database does not answer';
    await stage.createReady(stage.alice, execRequest('down', { emergency: true, reason, duration: '20s' }));
    await prometheus.alertIs('firing', 'DrawbridgeEmergencyUsed');
  });

  it('fires DrawbridgeDown while no replica runs, and no longer when replicas run again', async () => {
    await scale(0);
    await prometheus.alertIs('firing', 'DrawbridgeDown');
    await scale(2);
    await stage.rolledOut();
    await prometheus.scrape({ [job]: await pods() });
    await prometheus.alertIs('inactive', 'DrawbridgeDown');
    await prometheus.alertIs('inactive', 'DrawbridgeNoLeader');
  });

  async function pods(): Promise<ScrapedPods> {
    const found = await stage.pods(stage.system, 'app.kubernetes.io/component=server');
    const names = found.filter(({ metadata }) => !metadata.deletionTimestamp).map(({ metadata }) => metadata.name);
    return { cluster: stage.node, namespace: stage.system, names };
  }

  async function scale(replicas: number): Promise<void> {
    await stage.sh(`kubectl scale deployment/drawbridge -n ${stage.system} --replicas=${replicas}`);
  }
});

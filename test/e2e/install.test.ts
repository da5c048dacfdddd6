import assert from 'node:assert/strict';
import { podRequest } from '../support/access-requests.ts';
import { NodeStage } from '../support/node-stage.ts';
import { commandsOf } from '../support/page-commands.ts';
import { shown } from '../support/shown-output.ts';

const features = ['drawbridge', 'drawbridge-binding', 'drawbridge-gateway', 'drawbridge-inventory'];
const pods = 'app.kubernetes.io/name=drawbridge';
const accounts = 'kubectl get serviceaccount,role,rolebinding,clusterrole,clusterrolebinding -A -o name';

describe('drawbridge, from the image of its Dockerfile, by the commands of the documents', function () {
  this.timeout(300_000);
  let stage: NodeStage;

  before(async () => {
    stage = await NodeStage.bare();
    if (await stage.isInstalled()) await stage.sh('helm uninstall drawbridge -n drawbridge-system --timeout 5m');
  });

  it('is ready with access after docs/tasks/install.md', async () => {
    await stage.install();
    assert.deepEqual(await deployments(), [['drawbridge', 2]]);
  });

  it('gets the gateway, which the API server reaches, and which records on a volume', async () => {
    await stage.enableGateway();
    assert.deepEqual(await deployments(), [
      ['drawbridge', 2],
      ['drawbridge-gateway', 2],
    ]);
  });

  it('gets the inventory and binding', async () => {
    await stage.enableInventory();
    await stage.enableBinding();
    assert.deepEqual(
      await deployments(),
      features.map((name) => [name, 2]),
    );
  });

  it('has not restarted, and neither kubelet nor API server has refused a part of it', async () => {
    const containers = (await stage.pods(stage.system, pods)).flatMap(({ status }) => status.containerStatuses ?? []);
    assert.equal(containers.length, 2 * features.length);
    for (const { restartCount } of containers) assert.equal(restartCount, 0);
    const { stdout } = await stage.sh('kubectl get events -n drawbridge-system --field-selector type=Warning -o json');
    const warnings = (JSON.parse(stdout) as { items: { reason: string; message: string }[] }).items;
    const refused = warnings.filter(({ reason }) => /^Failed/.test(reason));
    assert.deepEqual(refused, []);
  });

  it('runs without root, capabilities, and a writable root', async () => {
    for (const { metadata, spec } of await stage.pods(stage.system, pods)) {
      const [{ name } = { name: '' }] = spec.containers;
      const [pid] = await stage.node.processesOf(stage.system, metadata.name, name);
      assert.ok(pid !== undefined, `${metadata.name} has a process`);
      const { stdout: text } = await stage.sh(`cat /proc/${pid}/status`);
      const field = (key: string): string => new RegExp(`^${key}:\\s+(\\S+)`, 'm').exec(text)?.[1] ?? '';
      assert.deepEqual(
        [field('Uid'), field('CapEff'), field('NoNewPrivs'), field('Seccomp')],
        ['65532', '0000000000000000', '1', '2'],
      );
    }
  });

  it('lets templates be written and become ready, with the workload of examples/', () => stage.applyExamples());

  it('is upgraded and rolled back by the commands of docs/tasks/upgrade.md, and open access stays', async () => {
    const request = await stage.createReady(stage.alice, podRequest('through-an-upgrade', { duration: '10m' }));
    const podName = request.status?.podName ?? '';
    const [upgrade = '', status = ''] = commandsOf('docs/tasks/upgrade.md', 'helm upgrade');
    await stage.sh(`${upgrade} --set podAnnotations.upgraded=yes`);
    assert.match((await stage.sh(status)).stdout, shown('tasks/upgrade.md', 'rolled out'));
    assert.equal(await stage.alice.mayExec(stage.namespace, podName), true);
    const [history = '', rollback = ''] = commandsOf('docs/tasks/upgrade.md', 'helm rollback');
    const revisions = JSON.parse((await stage.sh(`${history} -o json`)).stdout) as { revision: number }[];
    const revision = String(revisions.at(-2)?.revision);
    const { stdout } = await stage.sh(rollback.replace('REVISION', revision));
    assert.match(stdout, shown('tasks/upgrade.md', 'Rollback'));
    await stage.rolledOut();
    assert.equal(await stage.alice.mayExec(stage.namespace, podName), true);
    await stage.sh(`kubectl delete podaccessrequest ${request.metadata.name} -n ${stage.namespace}`);
  });

  it('passes helm test, whose account is gone afterwards', async () => {
    const [test = '', logs = ''] = commandsOf('docs/tasks/install.md', 'helm test');
    await stage.sh(test);
    assert.match((await stage.sh(logs)).stdout, shown('tasks/install.md', 'open grants'));
    assert.doesNotMatch((await stage.sh(accounts)).stdout, /drawbridge-test/);
  });

  it('fails helm test while no replica runs', async () => {
    await stage.sh('kubectl scale deployment/drawbridge -n drawbridge-system --replicas=0');
    const servers = `${pods},app.kubernetes.io/component=server`;
    await stage.sh(`kubectl wait pods -l ${servers} -n drawbridge-system --for=delete --timeout=60s`);
    const [test = '', logs = ''] = commandsOf('docs/tasks/install.md', 'helm test');
    const { code } = await stage.sh(test, { reject: false });
    assert.notEqual(code, 0);
    assert.match((await stage.sh(logs)).stdout, /^leader +found +no replica is the leader, /m);
    assert.doesNotMatch((await stage.sh(accounts)).stdout, /drawbridge-test/);
    await stage.sh('kubectl scale deployment/drawbridge -n drawbridge-system --replicas=2');
    await stage.rolledOut();
  });

  it('gets notifications, and a test message says that its address is not allowed', async () => {
    const upgrade = 'helm upgrade drawbridge charts/drawbridge -n drawbridge-system --reset-then-reuse-values';
    await stage.sh(`${upgrade} --set features.notify=true`);
    await stage.rolledOut();
    await stage.apply({
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'NotificationProvider',
      metadata: { name: 'mail', namespace: 'payments' },
      spec: { type: 'Email', address: 'smtps://127.0.0.1:465', sender: 'a@example.org', channel: 'b@example.org' },
    });
    const { code, stdout } = await stage.sh('drawbridge notify test mail -n payments', { reject: false });
    assert.equal(code, 1);
    assert.match(stdout, /^not delivered: 127\.0\.0\.1 has no public address/);
    await stage.sh('kubectl delete notificationprovider mail -n payments');
    await stage.sh(`${upgrade} --set features.notify=false`);
    await stage.rolledOut();
  });

  it('has no fault that doctor finds', async () => {
    const { code, stdout } = await stage.doctor();
    assert.equal(code, 0, stdout);
  });

  async function deployments(): Promise<[string, number][]> {
    const { body } = await stage.node.probe(`/apis/apps/v1/namespaces/${stage.system}/deployments`);
    const { items } = body as { items: { metadata: { name: string }; status: { readyReplicas?: number } }[] };
    return items.map(({ metadata, status }) => [metadata.name, status.readyReplicas ?? 0]);
  }
});

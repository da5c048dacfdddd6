import assert from 'node:assert/strict';
import { NodeStage } from '../support/node-stage.ts';

const features = ['drawbridge', 'drawbridge-binding', 'drawbridge-gateway', 'drawbridge-inventory'];
const pods = 'app.kubernetes.io/name=drawbridge';

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

  async function deployments(): Promise<[string, number][]> {
    const { body } = await stage.node.probe(`/apis/apps/v1/namespaces/${stage.system}/deployments`);
    const { items } = body as { items: { metadata: { name: string }; status: { readyReplicas?: number } }[] };
    return items.map(({ metadata, status }) => [metadata.name, status.readyReplicas ?? 0]);
  }
});

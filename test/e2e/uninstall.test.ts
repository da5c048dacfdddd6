import assert from 'node:assert/strict';
import { drawbridgeImage } from '../../sandbox/node/images/images.ts';
import type { Terminal } from '../../sandbox/terminal.ts';
import { requestLabel } from '../../src/api/access/names.ts';
import { execRequest, podRequest } from '../support/access-requests.ts';
import { installLimitMs, NodeStage } from '../support/node-stage.ts';
import { commandsOf } from '../support/page-commands.ts';
import { shown } from '../support/shown-output.ts';

const readyLimitMs = 10_000;

describe('uninstalling with open grants, by docs/tasks/uninstall.md', function () {
  this.timeout(180_000);
  let stage: NodeStage;
  let shells: Terminal[];

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    const requests = [
      await stage.createReady(stage.alice, podRequest('open-pod')),
      await stage.createReady(stage.alice, execRequest('open-exec')),
    ];
    shells = requests.map(({ status }) =>
      stage.terminal(stage.alice, 'kubectl', 'exec', '-ti', status?.podName ?? '', '--', 'sh'),
    );
    for (const shell of shells) {
      shell.write('echo "in $((40 + 2))"\n');
      await shell.shows(/in 42/);
    }
  });
  after(() => {
    for (const shell of shells ?? []) shell.kill();
  });

  it('revokes every grant, and leaves no Pod of drawbridge', async () => {
    const [command = ''] = commandsOf('docs/tasks/uninstall.md');
    assert.match((await stage.sh(command)).stdout, shown('tasks/uninstall.md', 'uninstalled'));
    for (const kinds of ['podaccessrequests,execaccessrequests', `pods,roles,rolebindings -l ${requestLabel}`]) {
      const { stdout } = await stage.sh(`kubectl get ${kinds} -n payments -o name`);
      assert.equal(stdout, '');
    }
    // The Pod of helm test stays, as the page says.
    await stage.sh('kubectl delete pod drawbridge-test -n drawbridge-system --ignore-not-found');
    await stage.sh('kubectl wait pods --all -n drawbridge-system --for=delete --timeout=90s');
    assert.notEqual(await shells[0]?.exit(), 0, 'the shell in the access pod ends with it');
  });

  it('leaves the templates, but no webhook and no gateway that could stand in the way', async () => {
    const { stdout: templates } = await stage.sh('kubectl get podaccesstemplates -n payments -o name');
    assert.match(templates, /payments-shell/);
    const { stdout } = await stage.sh(
      'kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations,apiservices -o name',
    );
    assert.doesNotMatch(stdout, /webhookconfiguration|gateway\.drawbridge\.dev/);
  });

  it('leaves the audit journal on its volume, intact and with the grants', async () => {
    assert.match(await stage.audit('verify'), /^INTACT/m);
    const report = await stage.audit('report');
    assert.match(report, / payments-shell +open-pod-\S+-access /);
    assert.match(report, / payments-exec +payments-/);
  });

  it('lets drawbridge be installed again, ready within 10 s', async () => {
    const readyMs = await timed(() => stage.install());
    console.log(`      ready ${readyMs} ms after helm install began`);
    assert.ok(readyMs < readyLimitMs, `ready after ${readyMs} ms`);
    await stage.sh(commandsOf('docs/tasks/uninstall.md')[0] ?? '');
  });

  it('and by the four lines of README.md, which open a shell for alice', async () => {
    const [build, load, install = '', apply = '', compile = '', request = ''] = commandsOf('README.md', 'kind load');
    const image = 'drawbridge:0.1.0';
    // buildah has built the image from the Dockerfile, and containerd gets it by another name.
    assert.deepEqual([build, load], [`docker build -t ${image} .`, `kind load docker-image ${image}`]);
    await stage.sh(compile);
    // As in a cluster that has never had drawbridge.
    await stage.sh('kubectl delete pods --all -n payments --force');
    await stage.sh('kubectl delete namespace drawbridge-system payments --timeout=60s');
    await stage.node.tagImage(await drawbridgeImage(), `docker.io/library/${image}`);
    await stage.sh(install);
    await stage.sh(apply);
    const [, program = '', ...args] = request.split(' ');
    assert.equal(program, 'dist/client.cjs');
    const shell = stage.administratorTerminal(...args);
    await shell.shows(/# /);
    shell.write('echo "in $((40 + 2)) as $(hostname)"\nexit\n');
    await shell.shows(/in 42 as payments-shell-/);
    assert.equal(await shell.exit(), 0);
  });

  async function timed(work: () => Promise<void>): Promise<number> {
    const startedMs = Date.now();
    await work();
    return Date.now() - startedMs;
  }
});

import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { recordedTemplate } from '../../sandbox/console-examples.ts';
import { ConsoleProcess, kubectlWithPlugin } from '../../sandbox/console-process.ts';
import { Terminal } from '../../sandbox/terminal.ts';
import { ConsoleVisitor, launchChromium } from '../support/console-visitor.ts';
import { installLimitMs, NodeStage } from '../support/node-stage.ts';
import type { Person } from '../support/person.ts';

const template = recordedTemplate.metadata.name;

describe('the console on a real node', function () {
  this.timeout(120_000);
  let stage: NodeStage;
  let browser: Browser;
  let shell: Terminal;
  const consoles: ConsoleProcess[] = [];

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    const { namespace } = stage;
    await stage.apply({ ...recordedTemplate, metadata: { name: template, namespace } });
    await stage.templatesReady();
    await stage.sh(`kubectl create rolebinding approver -n ${namespace} --clusterrole=drawbridge-approver --group=sre`);
    browser = await launchChromium();
  });
  after(async () => {
    shell?.kill();
    await browser?.close();
    await Promise.all(consoles.map((console) => console.stop()));
    if (stage === undefined) return;
    await stage.deleteRequests();
    await stage.sh(`kubectl delete rolebinding/approver podaccesstemplate/${template} -n ${stage.namespace}`);
  });

  const visit = async ({ kubeconfig }: Person): Promise<ConsoleVisitor> => {
    const console = await ConsoleProcess.start(stage.node, kubeconfig, '-n', stage.namespace);
    consoles.push(console);
    return ConsoleVisitor.open(browser, console);
  };

  it('gets alice a shell in a pod, once carol has approved', async () => {
    const [alice, carol] = [await visit(stage.alice), await visit(stage.carol)];
    await alice.goto(`/ask/${stage.namespace}/pod/${template}`);
    await alice.page.getByLabel('Reason').fill('INC-42 payments fail since noon');
    await alice.page.getByText('You may ask').waitFor();
    await alice.page.getByRole('button', { name: 'Ask', exact: true }).click();
    await carol.page.getByRole('link', { name: /^To decide/ }).click();
    await carol.page.getByRole('link', { name: 'Decide', exact: true }).click();
    await carol.page.getByRole('button', { name: 'Approve' }).click();
    await carol.page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
    await alice.page.getByRole('button', { name: 'Copy' }).click({ timeout: 60_000 });
    const copied = await alice.page.evaluate<string>('navigator.clipboard.readText()');
    shell = new Terminal('bash', ['-c', copied], {
      PATH: `${await kubectlWithPlugin(stage.node)}:${process.env['PATH']}`,
      HOME: stage.node.directory,
      KUBECONFIG: stage.alice.kubeconfig,
      TERM: 'xterm',
    });
    shell.write('echo "now in $HOSTNAME"\n');
    await shell.shows(new RegExp(`now in ${template}-\\w+-\\w+-access`));
    await alice.page.getByRole('button', { name: 'Give back' }).click();
    await alice.page.getByRole('dialog').getByRole('button', { name: 'Give back' }).click();
    assert.notEqual(await shell.exit(), 0);
    await alice.page.getByRole('article').getByText('Open', { exact: true }).waitFor({ state: 'detached' });
    assert.deepEqual([alice.takeProblems(), carol.takeProblems()], [[], []]);
  });
});

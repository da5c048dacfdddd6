import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkout } from '../../sandbox/node/images/dockerfile.ts';
import { createAuthority, issue } from '../../sandbox/pki.ts';
import { until } from '../../sandbox/wait.ts';
import { podRequest } from '../support/access-requests.ts';
import { installLimitMs, NodeStage } from '../support/node-stage.ts';
import { commandsOf } from '../support/page-commands.ts';
import { shown } from '../support/shown-output.ts';

describe('pages of docs/tasks, step by step on a real node:', function () {
  this.timeout(300_000);
  let stage: NodeStage;
  /** Where the commands read and write files. */
  let folder: string;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    folder = await mkdtemp(join(tmpdir(), 'drawbridge-task-pages-'));
    for (const name of ['charts', 'examples']) await symlink(join(checkout, name), join(folder, name));
    await symlink(stage.node.adminKubeconfig, join(folder, 'admin.yaml'));
    await writeFile(join(folder, 'before.log'), '');
  });
  after(async () => {
    if (folder) await rm(folder, { recursive: true });
  });

  const sh = async (lines: string, kubeconfig = stage.node.adminKubeconfig): Promise<string> =>
    (await stage.sh(lines, { cwd: folder, kubeconfig })).stdout;
  /** The commands of the first block of a page that contains the words. */
  const block = (page: string, words: string): string => commandsOf(`docs/tasks/${page}.md`, words).join('\n');
  /** Runs that block, which prints what the page shows. */
  const follow = async (page: string, words: string, output: RegExp): Promise<void> =>
    assert.match(await sh(block(page, words)), output);

  /** Access opens through the webhooks, the gateway answers, and doctor finds no fault. */
  async function works(name: string): Promise<void> {
    await stage.createReady(stage.alice, podRequest(name, { duration: '10m' }));
    await stage.deleteRequests();
    await sh('kubectl get --raw /apis/gateway.drawbridge.dev/v1alpha1');
    await sh('drawbridge doctor --installation');
  }

  const publicKeys = async (): Promise<string[]> => {
    const text = await sh('kubectl get configmap drawbridge-audit-keys -n drawbridge-system -o json');
    const { data } = JSON.parse(text) as { data: Readonly<Record<string, string>> };
    return Object.keys(data).map((key) => Buffer.from(key, 'base64url').toString('base64'));
  };

  /** What `drawbridge audit verify` prints about all that was kept, once heads cover it. */
  const intact = async (verify: string): Promise<string> =>
    until(
      'an intact journal',
      async () => {
        await sh(block('keep-the-audit-journal', 'audit-reader'));
        const { stdout } = await stage.sh(verify, { cwd: folder, reject: false });
        return /^INTACT/m.test(stdout) && stdout;
      },
      { timeoutMs: 60_000, everyMs: 2_000 },
    );
  const [, verify = ''] = commandsOf('docs/tasks/keep-the-audit-journal.md', 'audit verify');

  it('keep-the-audit-journal.md moves the journal to a volume, and loses no line', async () => {
    await sh(`${block('upgrade', 'helm upgrade').split('\n')[0]} --set audit.volume=null`);
    await stage.rolledOut();
    await stage.createReady(stage.alice, podRequest('before-the-volume', { duration: '10m' }));
    const steps = ['--follow', 'audit.volume'].map((words) => block('keep-the-audit-journal', words));
    const output = await sh([...steps, 'wait'].join('\n'));
    assert.match(output, shown('tasks/keep-the-audit-journal.md', 'rolled out'));
    await stage.rolledOut();
    await works('on-the-volume');
    assert.match(await intact(verify), shown('tasks/keep-the-audit-journal.md', 'INTACT'));
    const report = await sh(block('keep-the-audit-journal', 'audit report'));
    for (const name of ['before-the-volume', 'on-the-volume']) assert.match(report, new RegExp(` ${name}-`));
  });

  it('audit-keys.md replaces the key, and heads of both times prove the journal', async () => {
    const before = await publicKeys();
    await follow('audit-keys', 'kubectl patch', shown('tasks/audit-keys.md', 'patched'));
    await follow('audit-keys', 'rollout restart', shown('tasks/audit-keys.md', 'rolled out'));
    const replicas = () => stage.pods(stage.system, 'app.kubernetes.io/component=server');
    await until('the earlier replicas to end', async () => (await replicas()).length === 2, { timeoutMs: 60_000 });
    const [now = '', ...others] = await publicKeys();
    assert.deepEqual(others, []);
    assert.ok(!before.includes(now), now);
    await works('with-the-new-key');
    const report = await intact(verify);
    assert.ok(report.includes(`heads are signed by key ${now}`), report);
  });

  describe('certificates.md', () => {
    const secret = 'drawbridge-own-certificate';
    const certificate = (): Promise<string> =>
      sh(`kubectl get secret ${secret} -n drawbridge-system -o jsonpath='{.data.tls\\.crt}' --ignore-not-found`);
    const trusted = (): Promise<string> =>
      sh(
        `kubectl get validatingwebhookconfigurations drawbridge-pods -o jsonpath='{.webhooks[0].clientConfig.caBundle}'`,
      );

    it('replaces a certificate now, and the webhooks answer all the time', async () => {
      const before = await certificate();
      await follow('certificates', 'kubectl delete secret', shown('tasks/certificates.md', 'deleted'));
      await works('meanwhile');
      await until('another certificate', async () => !['', before].includes(await certificate()), {
        timeoutMs: 30_000,
      });
      await follow('certificates', 'kubectl get secret', shown('tasks/certificates.md', 'kubernetes.io/tls'));
      await works('with-a-new-certificate');
    });

    it('changes the mode to `secret`', async () => {
      const authority = createAuthority('of the test');
      await writeFile(join(folder, 'ca.crt'), authority.certificate);
      for (const [name, service] of [
        ['access', 'drawbridge-webhook'],
        ['gateway', 'drawbridge-gateway'],
        ['inventory', 'drawbridge-inventory-webhook'],
      ]) {
        const serves = [`${service}.drawbridge-system.svc`, 'drawbridge-callbacks.drawbridge-system.svc'];
        const identity = issue(authority, { commonName: `${name}`, serves });
        await writeFile(join(folder, `${name}.crt`), identity.certificate);
        await writeFile(join(folder, `${name}.key`), identity.key);
      }
      await follow(
        'certificates',
        'kubectl create secret',
        shown('tasks/certificates.md', 'drawbridge-gateway-tls created'),
      );
      const [upgrade = '', wait = ''] = commandsOf('docs/tasks/certificates.md', 'mode=secret');
      // The node has the inventory, too.
      const create = commandsOf('docs/tasks/certificates.md', 'kubectl create secret')[0] ?? '';
      await sh(create.replace('webhook-tls', 'inventory-webhook-tls').replaceAll('=access', '=inventory'));
      await sh(`${upgrade} --set inventory.certificates.secretName=drawbridge-inventory-webhook-tls`);
      assert.match(await sh(wait), shown('tasks/certificates.md', 'rolled out'));
      assert.equal(Buffer.from(await trusted(), 'base64').toString(), authority.certificate);
      await works('in-mode-secret');
    });

    it('changes it back to `own`', async () => {
      await follow('certificates', 'mode=own', shown('tasks/certificates.md', 'rolled out'));
      await works('in-mode-own');
      await sh(
        'kubectl delete secret drawbridge-{,gateway-,inventory-}{webhook-,}tls -n drawbridge-system --ignore-not-found',
      );
    });
  });

  describe('backup.md, with manifests,', () => {
    const kept = ['heads.json'];
    let keys: string[];

    before(async () => {
      const accessConfig = {
        allowedGroups: ['devs'],
        approvals: { all: [{ name: 'peer', count: 1 }] },
        emergency: { groups: ['devs'] },
      };
      await stage.apply({
        apiVersion: 'crds.wizardofoz.co/v1alpha1',
        kind: 'PodAccessTemplate',
        metadata: { name: 'payments-emergency', namespace: 'payments' },
        spec: { accessConfig, controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' } },
      });
      await sh('kubectl create rolebinding approvers -n payments --clusterrole=drawbridge-approver --group=sre');
      // Owns the templates after the restore.
      await sh('kubectl create rolebinding owner -n payments --clusterrole=cluster-admin --user=bob');
      await stage.templatesReady();
      const emergency = { templateName: 'payments-emergency', emergency: true, reason: 'the database is down' };
      await stage.createReady(stage.alice, podRequest('urgent', emergency));
      await stage.deleteRequests();
    });
    after(async () => {
      await sh('kubectl delete rolebinding approvers owner -n payments');
      await sh('kubectl delete podaccesstemplates,execaccesstemplates --all -n payments');
      await stage.applyExamples();
    });

    it('saves what is needed', async () => {
      keys = await publicKeys();
      await sh(block('backup', 'helm get values'));
      await intact(verify);
      await sh('cat before.log >> audit.log');
      const save = block('backup', 'heads.json');
      await sh(save);
      for (const feature of ['gateway', 'inventory']) {
        const name = `${feature}-heads.json`;
        const others = save.replace('-audit-heads', `-${feature}-audit-heads`).replace('heads.json', name);
        // Without a line, there is none.
        if ((await stage.sh(others, { cwd: folder, reject: false })).code === 0) kept.push(name);
      }
    });

    it('restores them in a cluster without drawbridge', async () => {
      await sh(block('uninstall', 'helm uninstall'));
      await sh('kubectl delete namespace drawbridge-system --timeout=90s');
      await sh('kubectl delete persistentvolumes --all --timeout=30s');
      await sh('kubectl delete -f charts/drawbridge/files/crds --timeout=60s');
      await stage.node.run('sh', ['-c', 'rm /var/lib/journals/*']);

      await follow('backup', 'kubectl create namespace', shown('tasks/backup.md', 'emergency-reviews created'));
      await stage.createVolumes();
      await follow('backup', '-f values.yaml', shown('tasks/backup.md', 'rolled out'));
      await stage.rolledOut();
      const restored = await sh(block('backup', 'kubectl create -f templates.yaml'), stage.bob.kubeconfig);
      assert.match(restored, shown('tasks/backup.md', 'payments-exec created'));
      await stage.templatesReady();
    });

    it('continues with the same keys, of which it needs no proof', async () => {
      assert.deepEqual((await publicKeys()).sort(), keys.sort());
    });

    it('makes who restores the templates their author, and access opens', async () => {
      const authors = await sh(
        `kubectl get podaccesstemplates -n payments -o jsonpath='{.items[*].spec.author.username}'`,
      );
      assert.equal(authors, 'bob bob');
      await works('after-the-restore');
    });

    it('still owes the review of an emergency, which carol makes', async () => {
      await stage.client.ok(stage.carol, 'approve', 'urgent', '--about', 'Review', '--reason', 'it was down');
      const reviews = `kubectl get configmap drawbridge-emergency-reviews -n drawbridge-system -o jsonpath='{.data}'`;
      // Other tests may owe reviews, too.
      await until('the review', async () => !(await sh(reviews)).includes('urgent'), { timeoutMs: 10_000 });
    });

    it('verifies the journal of before with its heads', async () => {
      const others = kept.slice(1).map((name) => ` --heads ${name}`);
      const output = await sh(`${block('backup', 'audit verify')}${others.join('')}`);
      assert.match(output, shown('tasks/backup.md', 'INTACT'));
    });
  });
});

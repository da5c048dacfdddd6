import assert from 'node:assert/strict';
import { mkdtemp, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../../sandbox/wait.ts';
import { AccessGateway } from '../../support/access-gateway.ts';
import { accessTemplate } from '../../support/access-manifests.ts';
import { execRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client } from '../../support/client.ts';

describe('a shell through the gateway, from the request to its end', () => {
  let stage: AccessStage;
  let gateway: AccessGateway;
  let client: Client;
  let request: StoredRequest;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    gateway = await AccessGateway.open(stage);
    client = new Client(stage);
    const config = {
      session: { via: 'Gateway' },
      extension: { times: 2, total: '4h', approvals: 'None' },
    };
    await stage.apply(accessTemplate('ExecAccessTemplate', 'watched', undefined, config));
    await stage.templateReady('ExecAccessTemplate', 'watched');
    request = await stage.createReady(stage.alice, execRequest('look', { templateName: 'watched', duration: '10m' }));
  });
  after(async () => {
    await gateway?.close();
    await stage?.close();
  });

  it('is what `drawbridge exec` opens, with the exit code of the command', async () => {
    const { code, stdout, stderr } = await client.run(stage.alice, 'exec', 'look', '--', 'sh', '-c', 'echo in; exit 3');
    assert.deepEqual([stdout, code], ['in\n', 3], stderr);
    const line = async () => (await gateway.process.audit(({ verdict }) => verdict === 'ended'))[0];
    // The gateway may learn of the end after the client.
    const ended = await until('the audit line of the end', line, { timeoutMs: 30_000 });
    assert.deepEqual([ended.who.user, ended['request'], ended['exitCode']], ['alice', 'look', 3]);
  });

  it('and other calls go through the context of `drawbridge use`', async () => {
    const home = await mkdtemp(join(tmpdir(), 'drawbridge-use-'));
    const { code, stdout, stderr } = await client.run({ ...stage.alice, home }, 'use', 'look');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /kubectl reaches pod payments-\S+, and only it, until \S+ \(in \d+m/);
    const kubeconfig = /^export KUBECONFIG=(.*)\n$/.exec(stdout)?.[1] ?? '';
    const [file = ''] = kubeconfig.split(':');
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.doesNotMatch(await readFile(file, 'utf8'), /client-key|token/);
    const pods = await stage.plane.kubectl(['get', 'pods', '-o', 'name'], { kubeconfig });
    assert.equal(pods.stdout, `pod/${request.status?.podName}\n`);
    const logs = await stage.plane.kubectl(['logs', request.status?.podName ?? ''], { kubeconfig, reject: false });
    assert.match(logs.stderr, /does not give get on pods\/log; it gives/);
  });

  it('stays open when the access is extended, and ends when it is revoked', async () => {
    const shell = client.start(stage.alice, 'exec', 'look', '--', 'sh', '-c', 'echo on; sleep 600');
    await until('the shell', async () => shell.soFar().stdout.includes('on'), { timeoutMs: 30_000 });
    const extended = await client.run(stage.alice, 'extend', 'look', '--by', '30m');
    assert.equal(extended.code, 0, extended.stderr);
    await client.run(stage.alice, 'revoke', 'look');
    const { code, stderr } = await shell.ended;
    assert.equal(code, 1);
    assert.match(stderr, /\[drawbridge\] access ended at \d\d:\d\d UTC: Revoked/);
  });
});

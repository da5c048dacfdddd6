import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Terminal } from '../../sandbox/terminal.ts';
import { deadlineOf, type StoredRequest } from '../support/access-requests.ts';
import { gatewayTemplate, installLimitMs, NodeStage } from '../support/node-stage.ts';

const template = 'payments-recorded';
const endLimitMs = 1_000;

describe('a session through the gateway on a real node', function () {
  this.timeout(120_000);
  let stage: NodeStage;
  let shell: Terminal;
  let view: Terminal;
  let request: StoredRequest;
  let session = '';
  /** The processes of each Pod of the workload, before the session. */
  let resting: readonly number[][];

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    await stage.apply(gatewayTemplate(template, { record: 'Required' }));
    await stage.templatesReady();
    await stage.sh(
      'kubectl create rolebinding session-auditors -n payments --clusterrole=drawbridge-session-auditor --group=sre',
    );
  });
  after(async () => {
    if (stage === undefined) return;
    for (const terminal of [shell, view]) terminal?.kill();
    await stage.deleteRequests();
    await stage.sh('kubectl delete rolebinding session-auditors -n payments');
    await stage.sh(`kubectl delete execaccesstemplate ${template} -n payments`);
  });

  it('opens with one command, and says that it is recorded', async () => {
    resting = await stage.workloadProcesses();
    shell = stage.terminal(stage.alice, 'drawbridge', 'request', 'exec', template, '--for', '25s', '--exec');
    shell.write('echo "now in $HOSTNAME"\n');
    const shown = await shell.shows(/now in payments-\w+-\w+/);
    assert.match(shown, /recorded/);
    const [, name = ''] = /created execaccessrequest\S*\/(\S+)/.exec(shown) ?? [];
    request = await stage.request('ExecAccessRequest', name, ({ status }) => status?.ready === true);
  });

  it('can be entered through the gateway only', async () => {
    const args = ['exec', '-n', stage.namespace, request.status?.podName ?? '', '--', 'id'];
    const { code, stderr } = await stage.alice.kubectl(args, { reject: false });
    assert.equal(code, 1);
    assert.match(stderr, /forbidden/i);
  });

  it('is seen by an auditor while it runs', async () => {
    const list = await stage.client.ok(stage.carol, 'sessions', 'list');
    [, session = ''] = /^alice +\S+ +exec -t +\S+ +(\S+) +Required$/m.exec(list) ?? [];
    assert.notEqual(session, '', list);
    view = stage.terminal(stage.carol, 'drawbridge', 'sessions', 'tail', session);
    // What was typed before the view begins is not in it.
    await shell.shows(/\$ |# /);
    const typed = setInterval(() => shell.write('echo "live $((40 + 2))"\n'), 250);
    await view.shows(/live 42/).finally(() => clearInterval(typed));
  });

  it('ends at the deadline of its grant, says so, and takes the view with it', async () => {
    await shell.exit();
    const lateMs = Date.now() - deadlineOf(request);
    assert.ok(lateMs >= 0 && lateMs < endLimitMs, `it ended ${lateMs} ms after the deadline`);
    assert.match(shell.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Expired/);
    assert.equal(await view.exit(), 0);
  });

  it('leaves no shell in the Pod', async () => {
    await stage.lateness('the shell to end', Date.now(), async () =>
      isDeepStrictEqual(await stage.workloadProcesses(), resting),
    );
  });

  it('leaves its recording on the volume', async () => {
    const played = await stage.client.ok(stage.carol, 'sessions', 'play', session);
    assert.match(played, /now in payments-\w+-\w+/);
    assert.match(played, /live 42/);
    const files = await stage.node.run('find', ['/var/lib/recordings', '-name', `${session}.cast`, '-size', '+0']);
    assert.match(files, new RegExp(`/${stage.namespace}/${session}\\.cast$`, 'm'));
  });
});

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import type { Terminal } from '../../sandbox/terminal.ts';
import { deadlineOf, execRequest, type StoredRequest } from '../support/access-requests.ts';
import { installLimitMs, type NodePod, NodeStage } from '../support/node-stage.ts';

/** How long after the deadline the API server may still allow what the grant permitted, and how long a Pod may still run. */
const rbacLimitMs = 1_000;
const podLimitMs = 5_000;

describe('access on a real node', function () {
  this.timeout(120_000);
  let stage: NodeStage;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
  });
  after(() => stage?.deleteRequests());

  describe('to a Pod of one’s own', () => {
    let shell: Terminal;
    let request: StoredRequest;
    let processes: number[];
    const pod = (): string => request.status?.podName ?? '';
    after(() => shell?.kill());

    it('opens with one command, which enters a terminal in a copy of the workload', async () => {
      const command = ['request', 'pod', 'payments-shell', '--for', '25s', '--reason', 'INC-42', '--exec'];
      shell = stage.terminal(stage.alice, 'drawbridge', ...command);
      shell.write('test -t 0 && echo "terminal $((40 + 2)) in $HOSTNAME"\n');
      const shown = await shell.shows(/terminal 42 in payments-shell-\S+/);
      const [, name = ''] = /created podaccessrequest\S*\/(\S+)/.exec(shown) ?? [];
      request = await stage.request('PodAccessRequest', name, ({ status }) => status?.ready === true);
      assert.ok(shown.includes(`in ${pod()}`), shown);
      processes = await stage.node.processesOf(stage.namespace, pod(), 'app');
      assert.ok(processes.length >= 2, `the container and the shell: ${processes}`);
    });

    it('lets no other user enter', async () => {
      const { code, stderr } = await stage.carol.kubectl(['exec', '-n', stage.namespace, pod(), '--', 'id'], {
        reject: false,
      });
      assert.equal(code, 1);
      assert.match(stderr, /forbidden/i);
    });

    it('closes at its deadline: first for new calls, then with the Pod, whose processes end', async () => {
      const endMs = deadlineOf(request);
      const allowed = (): Promise<boolean> => stage.alice.mayExec(stage.namespace, pod());
      assert.ok(await allowed());
      const rbacMs = await stage.lateness('RBAC to close', endMs, async () => !(await allowed()));
      assert.ok(rbacMs >= 0 && rbacMs < rbacLimitMs, `RBAC closed ${rbacMs} ms after the deadline`);
      assert.notEqual(await shell.exit(), 0);
      const alive = (): number[] => processes.filter((id) => existsSync(`/proc/${id}`));
      const podMs = await stage.lateness('the processes to end', endMs, () => alive().length === 0);
      assert.ok(podMs < podLimitMs, `the processes ended ${podMs} ms after the deadline`);
      const { status } = await stage.node.probe(`/api/v1/namespaces/${stage.namespace}/pods/${pod()}`);
      await stage.lateness('the Pod to go', endMs, async () => status === 404 || (await podOf(pod())) === undefined);
    });
  });

  describe('to a Pod of the workload', () => {
    let shell: Terminal;
    let request: StoredRequest;
    after(() => shell?.kill());

    it('opens for kubectl, by the command that the request names', async () => {
      request = await stage.createReady(stage.alice, execRequest('debug', { duration: '15s' }));
      const message = request.status?.accessMessage ?? '';
      const [, args = ''] = /kubectl (exec .*)$/m.exec(message) ?? [];
      assert.match(args, /-t?i/);
      shell = stage.terminal(stage.alice, 'kubectl', ...args.split(' '));
      shell.write('echo "now in $HOSTNAME"\n');
      await shell.shows(new RegExp(`now in ${request.status?.podName}`));
    });

    it('closes at its deadline for new calls; a shell without the gateway stays, as the documents say', async () => {
      const pod = request.status?.podName ?? '';
      const rbacMs = await stage.lateness(
        'RBAC to close',
        deadlineOf(request),
        async () => !(await stage.alice.mayExec(stage.namespace, pod)),
      );
      assert.ok(rbacMs >= 0 && rbacMs < rbacLimitMs, `RBAC closed ${rbacMs} ms after the deadline`);
      const { stderr } = await stage.alice.kubectl(['exec', '-n', stage.namespace, pod, '--', 'id'], { reject: false });
      assert.match(stderr, /forbidden/i);
      shell.write('echo "still $((40 + 2))"; exit\n');
      await shell.shows(/still 42/);
      assert.equal(await shell.exit(), 0);
    });
  });

  async function podOf(name: string): Promise<NodePod | undefined> {
    const { status, body } = await stage.node.probe(`/api/v1/namespaces/${stage.namespace}/pods/${name}`);
    return status === 200 ? (body as NodePod) : undefined;
  }
});

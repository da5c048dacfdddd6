import assert from 'node:assert/strict';
import { kill } from 'node:process';
import type { Terminal } from '../../sandbox/terminal.ts';
import { until } from '../../sandbox/wait.ts';
import { deadlineOf, podRequest, type StoredRequest } from '../support/access-requests.ts';
import { installLimitMs, type NodePod, NodeStage } from '../support/node-stage.ts';

/** docs/concepts/access.md: how late a grant may end after its leader was killed; with what this test needs to see it. */
const killedLimitMs = 18_000;

describe('open access on a real node', function () {
  this.timeout(300_000);
  let stage: NodeStage;
  const shells: Terminal[] = [];

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
  });
  afterEach(() => {
    for (const shell of shells.splice(0)) shell.kill();
  });
  after(async () => {
    await stage.deleteRequests();
  });

  it('survives the eviction of every replica, which the budgets spread', async () => {
    const request = await stage.createReady(stage.alice, podRequest('drained', { duration: '10m' }));
    const shell = await entered(stage.terminal(stage.alice, 'drawbridge', 'exec', request.metadata.name));
    let refused = 0;
    for (const { metadata } of await replicas()) {
      await until(
        `the eviction of ${metadata.name}`,
        async () => {
          const { status } = await evict(metadata.name);
          if (status === 429) refused += 1;
          return status === 201 || status === 404;
        },
        { timeoutMs: 60_000, everyMs: 250 },
      );
    }
    assert.ok(refused > 0, 'a budget delayed the second replica of a feature');
    await stage.rolledOut();
    shell.write('echo "on $((43 + 2))"\n');
    await shell.shows(/on 45/);
    await stage.createReady(stage.alice, podRequest('after-drain', { duration: '10m' }));
  });

  it('ends soon after its deadline when the leader is killed before, and its Pod with it', async () => {
    const request = await stage.createReady(stage.alice, podRequest('orphaned', { duration: '15s' }));
    const { stdout } = await stage.sh(
      'kubectl get lease drawbridge-access -n drawbridge-system -o jsonpath={.spec.holderIdentity}',
    );
    const leader = (await replicas()).find(({ metadata }) => stdout.startsWith(metadata.name));
    assert.ok(leader !== undefined, `the holder ${stdout} is a Pod`);
    await killReplica(leader);
    await closed(request, killedLimitMs);
  });

  async function entered(shell: Terminal): Promise<Terminal> {
    shells.push(shell);
    shell.write('echo "in $((40 + 2))"\n');
    await shell.shows(/in 42/);
    return shell;
  }

  async function replicas(): Promise<NodePod[]> {
    const pods = await stage.pods(stage.system, 'app.kubernetes.io/name=drawbridge');
    return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  const evict = (name: string) =>
    stage.node.call('POST', `/api/v1/namespaces/${stage.system}/pods/${name}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace: stage.system },
    });

  async function killReplica({ metadata, spec }: NodePod): Promise<void> {
    const [container] = spec.containers;
    for (const id of await stage.node.processesOf(stage.system, metadata.name, container?.name ?? ''))
      kill(id, 'SIGKILL');
  }

  /** Resolves when the API server no longer allows what the grant permitted. */
  async function closed(request: StoredRequest, limitMs: number): Promise<void> {
    const [{ kind, metadata }, name] = [request, stage.namespace];
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}/rolebindings`;
    const lateMs = await stage.lateness(`${kind} ${metadata.name} to close`, deadlineOf(request), async () => {
      const { body } = await stage.node.probe(rbac);
      return !JSON.stringify(body).includes(metadata.uid);
    });
    assert.ok(lateMs >= 0 && lateMs < limitMs, `it closed ${lateMs} ms after the deadline`);
  }
});

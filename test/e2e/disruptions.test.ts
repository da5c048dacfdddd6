import assert from 'node:assert/strict';
import { kill } from 'node:process';
import { isDeepStrictEqual } from 'node:util';
import type { Terminal } from '../../sandbox/terminal.ts';
import { until } from '../../sandbox/wait.ts';
import { deadlineOf, execRequest, podRequest, type StoredRequest } from '../support/access-requests.ts';
import { gatewayTemplate, installLimitMs, type NodePod, NodeStage } from '../support/node-stage.ts';

/** docs/concepts/access.md: how late a grant may end after its leader was killed; with what this test needs to see it. */
const killedLimitMs = 18_000;
/** How late the gateway may end a session. */
const sessionLimitMs = 1_000;
/** How soon a connection is given up whose packets are lost. */
const deadLimitMs = 20_000;
const template = 'payments-gateway';

describe('open access on a real node', function () {
  this.timeout(300_000);
  let stage: NodeStage;
  /** A shell in an access pod, without the gateway, which stays open from the first test to the last. */
  let shell: Terminal;
  /** A grant whose sessions go through the gateway. */
  let grant: StoredRequest;
  /** The processes of the workload without a session. */
  let resting: readonly number[][];
  const terminals: Terminal[] = [];

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    await stage.apply(gatewayTemplate(template));
    await stage.templatesReady();
    resting = await stage.workloadProcesses();
    const request = await stage.createReady(stage.alice, podRequest('disrupted', { duration: '1h' }));
    shell = await entered(request);
    grant = await stage.createReady(stage.alice, execRequest('through-gateway', { templateName: template }));
  });
  after(async () => {
    for (const terminal of terminals) terminal.kill();
    await stage?.deleteRequests();
    await stage?.sh(`kubectl delete execaccesstemplate ${template} -n payments`);
  });

  it('survives the eviction of every replica, which the budgets spread', async () => {
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
    await answers(shell);
    await stage.createReady(stage.alice, podRequest('after-drain', { duration: '10m' }));
  });

  it('survives a rolling update; a session through the gateway ends with the reason, and can be opened again', async () => {
    const session = await entered(grant);
    await stage.sh('kubectl rollout restart deployment/drawbridge deployment/drawbridge-gateway -n drawbridge-system');
    await stage.createReady(stage.alice, podRequest('during-update', { duration: '10m' }));
    await session.exit();
    assert.match(session.text, /\[drawbridge\] the session ended at \d\d:\d\d UTC: Restarting/);
    await rests();
    await stage.rolledOut();
    await answers(shell);
    await leaves(await entered(grant));
    await rests();
  });

  it('survives the death of the gateway, whose sessions can be opened again; their shells stay, as the documents say', async () => {
    const session = await entered(grant);
    session.write('echo "process $$"\n');
    const [, id = ''] = /process (\d+)/.exec(await session.shows(/process \d+/)) ?? [];
    await signed();
    const killed = await replicas('drawbridge-gateway');
    for (const replica of killed) await killReplica(replica);
    assert.notEqual(await session.exit(), 0);
    await restarted(killed);
    const again = await entered(grant);
    again.write(`kill -9 ${id} && echo "ended $((40 + 3))"\n`);
    await again.shows(/ended 43/);
    await leaves(again);
    await rests();
  });

  it('opens and ends although the packets of every open connection of the leader are lost, which it notices', async () => {
    const replica = await leader();
    const connections = await connectionsOf(replica);
    assert.ok(connections.length > 0);
    await lose(connections, 'insert');
    try {
      const dead = new Set(connections);
      const noticedMs = await stage.lateness('the dead connections to close', Date.now(), async () =>
        (await connectionsOf(replica, 'idle')).every((one) => !dead.has(one)),
      );
      console.log(`      ${connections.length} dead connections were closed after ${noticedMs} ms`);
      assert.ok(noticedMs < deadLimitMs, `noticed after ${noticedMs} ms`);
      await stage.createReady(stage.alice, podRequest('after-loss', { duration: '10m' }));
    } finally {
      await lose(connections, 'delete');
    }
  });

  it('ends soon after its deadline when the leader is killed before; the gateway ends its sessions on time', async () => {
    await signed();
    const requests = [
      await stage.createReady(stage.alice, podRequest('orphaned', { duration: '15s' })),
      await stage.createReady(
        stage.alice,
        execRequest('orphaned-session', { templateName: template, duration: '15s' }),
      ),
    ] as const;
    const session = await entered(requests[1]);
    await killReplica(await leader());
    await session.exit();
    const lateMs = Date.now() - deadlineOf(requests[1]);
    assert.ok(lateMs >= 0 && lateMs < sessionLimitMs, `the session ended ${lateMs} ms after the deadline`);
    assert.match(session.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Expired/);
    for (const request of requests) await closed(request, killedLimitMs);
    await rests();
    await answers(shell);
  });

  it('is in the audit journal, which is intact although every replica was replaced', async () => {
    await signed();
    const report = await stage.audit('report');
    for (const pod of [/ disrupted-\S+-access /, / orphaned-\S+-access /]) assert.match(report, pod);
  });

  /** Opens a shell with the command of the client. */
  async function entered({ metadata }: StoredRequest): Promise<Terminal> {
    const terminal = stage.terminal(stage.alice, 'drawbridge', 'exec', metadata.name);
    terminals.push(terminal);
    await answers(terminal);
    return terminal;
  }

  /** Resolves when the shell executes what was typed. */
  async function answers(terminal: Terminal): Promise<void> {
    const count = terminal.text.length;
    terminal.write(`echo "${count} $((40 + 2))"\n`);
    await terminal.shows(new RegExp(`${count} 42`));
  }

  async function leaves(terminal: Terminal): Promise<void> {
    terminal.write('exit\n');
    assert.equal(await terminal.exit(), 0);
  }

  /** Resolves when the workload has exactly the processes that it had without a session. */
  async function rests(): Promise<void> {
    await stage.lateness('the shells to end', Date.now(), async () =>
      isDeepStrictEqual(await stage.workloadProcesses(), resting),
    );
  }

  async function replicas(deployment = 'drawbridge'): Promise<NodePod[]> {
    const pods = await stage.pods(stage.system, 'app.kubernetes.io/name=drawbridge');
    return pods.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined && metadata.name.startsWith(`${deployment}-`),
    );
  }

  const evict = (name: string) =>
    stage.node.call('POST', `/api/v1/namespaces/${stage.system}/pods/${name}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace: stage.system },
    });

  async function leader(): Promise<NodePod> {
    const { stdout } = await stage.sh(
      'kubectl get lease drawbridge-access -n drawbridge-system -o jsonpath={.spec.holderIdentity}',
    );
    const found = (await replicas()).find(({ metadata }) => stdout.startsWith(metadata.name));
    assert.ok(found !== undefined, `the holder ${stdout} is a Pod`);
    return found;
  }

  async function processesOf({ metadata, spec }: NodePod): Promise<number[]> {
    return stage.node.processesOf(stage.system, metadata.name, spec.containers[0]?.name ?? '');
  }

  /** Resolves when a head covers lines of each chain; the last 5 s of a process that is killed are unproven. */
  async function signed(): Promise<void> {
    const isIntact = async () => /^INTACT/m.test(await stage.audit('verify'));
    await stage.lateness('the heads of the journals', Date.now(), isIntact);
  }

  async function killReplica(pod: NodePod): Promise<void> {
    for (const id of await processesOf(pod)) kill(id, 'SIGKILL');
  }

  /** Resolves when the kubelet has started the containers again, and they are ready. */
  async function restarted(pods: readonly NodePod[]): Promise<void> {
    const before = new Map(pods.map(({ metadata, status }) => [metadata.name, status.containerStatuses?.[0]]));
    await stage.lateness('the gateway to start again', Date.now(), async () => {
      const now = (await replicas('drawbridge-gateway')).map(({ metadata, status }) => {
        const container = status.containerStatuses?.[0];
        return container?.ready && container.restartCount !== before.get(metadata.name)?.restartCount;
      });
      return now.length === before.size && now.every(Boolean);
    });
    await stage.sh('kubectl wait --for=condition=Available apiservice/v1alpha1.gateway.drawbridge.dev --timeout=30s');
  }

  /**
   * The open connections of a replica to the API server, each as `ADDRESS:PORT` of the Pod. Idle ones have sent nothing that waits for the
   * acknowledgement of the API server, like those of watches; those with a call end by the time limit of the call.
   */
  async function connectionsOf(pod: NodePod, which: 'all' | 'idle' = 'all'): Promise<string[]> {
    const [process] = await processesOf(pod);
    const { stdout } = await stage.sh(`nsenter --target ${process} --net ss -Htn state established dport = :443`);
    const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/));
    return rows.flatMap(([, unacknowledged, local]) =>
      local !== undefined && (which === 'all' || unacknowledged === '0') ? [local] : [],
    );
  }

  /** Drops all packets of the connections, or no longer. */
  async function lose(connections: readonly string[], how: 'insert' | 'delete'): Promise<void> {
    const rules = connections.flatMap((connection) => {
      const [address, port] = connection.split(':');
      return [
        `iptables -w --${how} INPUT -p tcp -s ${address} --sport ${port} -j DROP`,
        `iptables -w --${how} OUTPUT -p tcp -d ${address} --dport ${port} -j DROP`,
      ];
    });
    await stage.node.run('sh', ['-ec', rules.join('\n')]);
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

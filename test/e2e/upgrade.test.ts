import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Terminal } from '../../sandbox/terminal.ts';
import { deadlineOf, execRequest, podRequest, type StoredRequest } from '../support/access-requests.ts';
import { installEarlier, isEarlierKnown } from '../support/earlier-release.ts';
import { gatewayTemplate, installLimitMs, NodeStage } from '../support/node-stage.ts';
import { commandsOf } from '../support/page-commands.ts';
import type { Person } from '../support/person.ts';

const templateWith = (name: string, accessConfig: object): object => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name, namespace: 'payments' },
  spec: {
    accessConfig: { allowedGroups: ['devs'], ...accessConfig },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
    controllerTargetMutationConfig: { command: ['sh', '-c', 'sleep 86400'] },
  },
});
const guarded = templateWith('guarded', { approvals: { all: [{ name: 'peer', count: 2 }] } });
/** Its accesses start with a claim, and can be extended. */
const claimed = templateWith('claimed', {
  approvals: { all: [{ name: 'peer', count: 1 }], claimWithin: '1h' },
  extension: { times: 3, total: '8h' },
});

(isEarlierKnown ? describe : describe.skip)('an upgrade and the way back, on a real node,', function () {
  this.timeout(240_000);
  let stage: NodeStage;
  /** Of alice. */
  let open: StoredRequest[];
  let shell: Terminal;
  /** Through the gateway. */
  let session: Terminal;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.bare();
    await uninstall();
    await installEarlier(stage, '--set features.gateway=true');
    await stage.applyExamples();
    await stage.apply(guarded, claimed, gatewayTemplate('through-gateway'));
    await stage.templatesReady();
    const approvers = '--clusterrole=drawbridge-approver --group=sre --group=payments-leads';
    await stage.sh(`kubectl create rolebinding approvers ${approvers} -n ${stage.namespace}`);
    open = [
      await stage.createReady(stage.alice, podRequest('kept-pod', { duration: '30m' })),
      await stage.createReady(stage.alice, execRequest('kept-exec', { duration: '30m' })),
    ];
    shell = stage.terminal(stage.alice, 'kubectl', 'exec', '-ti', podOf(open[0]), '--', 'sh');
    shell.write('echo "before $((40 + 2))"\n');
    await shell.shows(/before 42/);
    await client(stage.alice, 'request', 'pod', 'guarded', '--name', 'waiting', '--no-wait');
    await client(stage.carol, 'approve', 'waiting');
    await client(stage.alice, 'request', 'pod', 'guarded', '--name', 'denied', '--no-wait');
    await client(stage.carol, 'deny', 'denied');
    for (const name of ['claimable', 'extended']) {
      await client(stage.alice, 'request', 'pod', 'claimed', '--name', name, '--no-wait');
      await client(stage.carol, 'approve', name);
    }
    await client(stage.alice, 'claim', 'extended');
    for (const [index, vote] of (['approve', 'deny'] as const).entries()) {
      await client(stage.alice, 'extend', 'extended', '--by', '30m', '--no-wait');
      await client(stage.carol, vote, 'extended');
      open[2] = await stage.request('PodAccessRequest', 'extended', ({ status }) => isDecided(status, index));
    }
    await client(stage.alice, 'request', 'exec', 'through-gateway', '--name', 'sessions', '--for', '30m');
    session = await newSession();
    await stage.request('PodAccessRequest', 'claimable', ({ status }) => status?.approval?.state === 'Claimable');
    await stage.request('PodAccessRequest', 'denied', ({ status }) => status?.ended !== undefined);
  });
  after(async function () {
    this.timeout(installLimitMs);
    for (const terminal of [shell, session]) terminal?.kill();
    await stage.sh(`kubectl delete rolebinding/approvers -n ${stage.namespace} --ignore-not-found`);
    await uninstall();
  });

  it('keep open access and its shell, and votes; sessions through the gateway end, and begin again', async () => {
    const [upgrade = '', status = ''] = commandsOf('docs/tasks/upgrade.md', 'helm upgrade');
    await keepsOpen('upgraded', async () => {
      await stage.sh(`${upgrade} --set image.tag=`);
      await stage.sh(status);
    });
    await beginsAgain();
    await client(stage.bob, 'approve', 'waiting');
    open.push(await stage.request('PodAccessRequest', 'waiting', ({ status }) => status?.ready === true));
  });

  it('go on with the claims and extensions that the earlier version decided', async () => {
    // The leader writes it again in the form of its version.
    const isClaimable = ({ status }: StoredRequest): boolean => status?.approval?.due !== undefined;
    await stage.request('PodAccessRequest', 'claimable', isClaimable);
    await client(stage.alice, 'claim', 'claimable');
    open.push(await stage.request('PodAccessRequest', 'claimable', ({ status }) => status?.ready === true));
    const extended = await stage.request('PodAccessRequest', 'extended', () => true);
    assert.equal(extended.status?.expiresAt, open[2]?.status?.expiresAt);
    await client(stage.alice, 'extend', 'extended', '--by', '30m', '--no-wait');
    await client(stage.carol, 'approve', 'extended');
    const granted = ['Granted', 'Denied', 'Granted'];
    const areDecided = ({ status }: StoredRequest): boolean =>
      isDeepStrictEqual(
        status?.extensions?.map(({ state }) => state),
        granted,
      );
    await stage.request('PodAccessRequest', 'extended', areDecided);
  });

  it('keep open access and its shell in the rollback, also what the later version opened', async () => {
    const [, rollback = ''] = commandsOf('docs/tasks/upgrade.md', 'helm rollback');
    await keepsOpen('back', async () => {
      await stage.sh(rollback.replace('REVISION', '1'));
      await stage.rolledOut();
    });
    await beginsAgain();
  });

  it('end access on time after both', async () => {
    const request = await stage.createReady(stage.alice, podRequest('short', { duration: '20s' }));
    const deadline = deadlineOf(request);
    const closed = async (): Promise<boolean> => !(await stage.alice.mayExec(stage.namespace, podOf(request)));
    const lateMs = await stage.lateness('the access to end', deadline, closed);
    assert.ok(lateMs < 2000, `${lateMs} ms late`);
    for (const { kind, metadata } of open) {
      await stage.sh(`kubectl delete ${kind} ${metadata.name} -n ${stage.namespace}`);
      assert.equal(
        await stage.alice.mayExec(stage.namespace, podOf(open.find((one) => one.metadata === metadata))),
        false,
      );
    }
  });

  const podOf = (request: StoredRequest | undefined): string => request?.status?.podName ?? '';

  async function client(person: Person, ...args: string[]): Promise<void> {
    const { code, stderr } = await stage.client.run(person, ...args);
    assert.equal(code, 0, stderr);
  }

  /** With what makes a gap of 40 s for the next installation: templates, and the record of other rules. */
  async function uninstall(): Promise<void> {
    if (!(await stage.isInstalled())) return;
    await stage.sh(`helm uninstall drawbridge -n ${stage.system} --timeout 5m`);
    await stage.sh(`kubectl delete podaccesstemplates,execaccesstemplates --all -n ${stage.namespace}`);
    await stage.sh(`kubectl delete secret drawbridge-policies -n ${stage.system} --ignore-not-found`);
  }

  async function newSession(): Promise<Terminal> {
    const terminal = stage.terminal(stage.alice, 'drawbridge', 'exec', 'sessions');
    terminal.write('echo "session $((40 + 2))"\n');
    await terminal.shows(/session 42/);
    return terminal;
  }

  async function beginsAgain(): Promise<void> {
    await stage.rolledOut();
    await session.exit();
    assert.match(session.text, /\[drawbridge\] the session ended at \d\d:\d\d UTC: Restarting/);
    session = await newSession();
  }

  /** Asserts that alice may enter each Pod all the time, that no deadline moves, and that her shell goes on. */
  async function keepsOpen(word: string, act: () => Promise<void>): Promise<void> {
    let isDone = false;
    const acting = act().finally(() => {
      isDone = true;
    });
    while (!isDone) {
      for (const request of open) assert.equal(await stage.alice.mayExec(stage.namespace, podOf(request)), true);
      await sleep(200);
    }
    await acting;
    for (const request of open) {
      const now = await stage.request(request.kind, request.metadata.name, () => true);
      assert.equal(deadlineOf(now), deadlineOf(request));
    }
    shell.write(`echo "${word} $((40 + 2))"\n`);
    await shell.shows(new RegExp(`^${word} 42`, 'm'));
  }
});

const isDecided = (status: StoredRequest['status'], index: number): boolean =>
  !['Pending', undefined].includes(status?.extensions?.[index]?.state);

import assert from 'node:assert/strict';
import { GatewayProcess } from '../../../sandbox/gateway-process.ts';
import { whenServed } from '../../../sandbox/served.ts';
import type { Terminal } from '../../../sandbox/terminal.ts';
import { until } from '../../../sandbox/wait.ts';
import { type AccessSession, accessSessions } from '../../../src/api/access/access-session.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';
import { shown } from '../../support/shown-output.ts';

const sleepCommand = ['sh', '-c', 'echo on; sleep 600'];

describe('an AccessSession', () => {
  let stage: GatewayStage;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
  });
  after(() => stage?.close());

  const sessions = async ({ name }: StagedGrant): Promise<AccessSession[]> => {
    const path = `/apis/access.drawbridge.dev/v1alpha1/namespaces/${stage.namespace}/${accessSessions.plural}`;
    const { items } = (await stage.plane.probe(path)).body as { items: AccessSession[] };
    return items.filter(({ spec }) => spec.grant === name);
  };
  const gone = async (grant: StagedGrant): Promise<void> => {
    await until('the AccessSession to go', async () => (await sessions(grant)).length === 0, { timeoutMs: 30_000 });
  };
  const kill = ['delete', accessSessions.plural, '--wait=false'];

  /** A command that runs, and its AccessSession. */
  async function running(grant: StagedGrant, options: readonly string[] = []) {
    const args = [...grant.via, 'exec', ...options, 'payments', '--', ...sleepCommand];
    const terminal: Terminal = stage.terminal(stage.alice, args);
    await terminal.shows(/on/);
    const [session] = await sessions(grant);
    assert.ok(session, 'it exists before the first byte passes');
    return { terminal, session, name: session.metadata.name };
  }

  it('exists while its session does, and says who is where', async () => {
    const grant = await stage.grant({ over: { session: { via: 'Gateway', record: 'BestEffort' } } });
    const { terminal, session, name } = await running(grant, ['-ti']);
    const { commandHash, startedAt, replica, ...spec } = session.spec;
    assert.deepEqual(spec, {
      user: 'alice',
      grant: grant.name,
      request: { kind: 'ExecAccessRequest', name: grant.request },
      pod: 'payments',
      container: 'app',
      stream: 'exec',
      tty: true,
      recording: 'BestEffort',
    });
    const [opened] = await stage.gateway.audit((line) => line['session'] === name && line.verdict === 'opened');
    assert.equal(opened?.['commandHash'], commandHash);
    assert.equal(JSON.stringify(session).includes('sleep'), false, 'a command may contain secrets');
    assert.ok(Date.now() - Date.parse(startedAt) < 60_000);
    assert.deepEqual(
      session.metadata.ownerReferences?.map(({ uid, controller }) => [uid, controller]),
      [[grant.uid, undefined]],
    );
    const table = await stage.plane.kubectl(['get', 'asess', '-o', 'wide', '-n', stage.namespace]);
    assert.match(table.stdout, /^NAME +USER +POD +STREAM +GRANT +AGE +CONTAINER +RECORDING +REPLICA$/m);
    assert.match(
      table.stdout,
      new RegExp(`^${name} +alice +payments +exec +${grant.name} +\\d+s +app +BestEffort +${replica}$`, 'm'),
    );
    const short = await stage.plane.kubectl(['get', 'accesssessions', '-n', stage.namespace]);
    assert.match(short.stdout, shown('concepts/gateway-sessions.md', 'STREAM'));
    const ofCategory = await stage.plane.kubectl(['get', 'access', '-n', stage.namespace]);
    assert.match(ofCategory.stdout, new RegExp(`^accesssession\\.access\\.drawbridge\\.dev/${name} +alice `, 'm'));
    assert.match(ofCategory.stdout, /^execaccessrequest\.crds\.wizardofoz\.co\/\S+ /m);
    assert.doesNotMatch(ofCategory.stdout, /template\./);
    terminal.kill();
    await gone(grant);
  });

  it('ends its session when it is deleted: the terminal says so, and kubectl exits with 1', async () => {
    const grant = await stage.grant();
    const { terminal, name } = await running(grant, ['-ti']);
    const other = await running(await stage.grant());
    await stage.plane.kubectl([...kill, name, '-n', stage.namespace]);
    assert.equal(await terminal.exit(), 1);
    const text =
      /the session ended at \d\d:\d\d UTC: Killed; a user deleted its AccessSession; ask an administrator before you connect again/;
    assert.match(terminal.text, text);
    assert.match(terminal.text, new RegExp(`error: ${text.source}`));
    const ended = await stage.ended(grant);
    assert.deepEqual([ended['session'], ended['code']], [name, 'Killed']);
    assert.equal((await sessions(await stage.grant())).length, 0);
    const again = await stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', 'true'], { reject: false });
    assert.equal(again.code, 0, 'the grant stays open');
    assert.equal((await stage.plane.probe(pathOf(other.name))).status, 200, 'no other session ends');
    other.terminal.kill();
  });

  it('ends its session also when its deletion waits for a finalizer', async () => {
    const grant = await stage.grant();
    const { terminal, name } = await running(grant);
    await stage.plane.kubectl([...kill, name, '--cascade=foreground', '-n', stage.namespace]);
    assert.equal(await terminal.exit(), 1);
    assert.match(terminal.text, /Killed/);
    // The garbage collector learns of new kinds every 30 s, so it may have done this already.
    const collector = '--as=system:serviceaccount:kube-system:generic-garbage-collector';
    const release = ['patch', 'asess', name, '--type=merge', '-p', '{"metadata":{"finalizers":null}}', collector];
    await stage.plane.kubectl([...release, '-n', stage.namespace], { reject: false });
    await gone(grant);
  });

  it('cannot be deleted by its user', async () => {
    const grant = await stage.grant();
    const { terminal, name } = await running(grant);
    for (const person of [stage.alice, stage.bob])
      assert.equal((await person.call('DELETE', pathOf(name))).status, 403);
    assert.equal((await sessions(grant)).length, 1);
    terminal.kill();
  });

  it('is required: without its kind, no session opens, and kubectl says what is missing', async () => {
    const grant = await stage.grant();
    const crd = `${accessSessions.plural}.${accessSessions.group}`;
    const held = await running(grant);
    await stage.plane.kubectl(['delete', 'crd', crd]);
    assert.equal(await held.terminal.exit(), 1, 'its object is gone');
    assert.match(held.terminal.text, /Killed/);
    const refused = await stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', 'touch', '/tmp/ran'], {
      reject: false,
    });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the gateway could not create the AccessSession/);
    const [denied] = await stage.gateway.audit(
      (line) => line.verdict === 'denied' && line['request'] === grant.request,
    );
    assert.equal(denied?.['code'], 'GatewayFailed');
    await stage.plane.kubectl(['apply', '-f', 'charts/drawbridge/files/crds/accesssessions.yaml']);
    await whenServed(stage.plane, crd);
    const opens = async (): Promise<boolean> => {
      const args = [...grant.via, 'exec', 'payments', '--', 'true'];
      return (await stage.alice.kubectl(args, { reject: false })).code === 0;
    };
    await until('sessions to open again', opens, { timeoutMs: 30_000 });
  });

  describe('of a replica that was killed', () => {
    it('is deleted by another replica once the Lease is gone', async () => {
      const grant = await stage.grant();
      const { name, session } = await running(grant);
      const lease = `drawbridge-gateway-${session.spec.replica}`;
      const { stdout } = await stage.plane.kubectl(['get', 'lease', lease, '-n', stage.namespace, '-o', 'json']);
      const { spec, metadata } = JSON.parse(stdout) as {
        spec: { holderIdentity: string; leaseDurationSeconds: number };
        metadata: { annotations: Record<string, string> };
      };
      assert.deepEqual([spec.holderIdentity, spec.leaseDurationSeconds], [session.spec.replica, 120]);
      assert.equal(metadata.annotations['gateway.drawbridge.dev/address'], `127.0.0.1:${stage.gateway.port}`);
      const killed = stage.gateway;
      await killed.kill();
      stage.gateway = await GatewayProcess.start(stage.plane, { namespace: stage.namespace });
      assert.equal((await stage.plane.probe(pathOf(name))).status, 200, 'the Lease still counts');
      await stage.plane.kubectl(['delete', 'lease', lease, '-n', stage.namespace]);
      await gone(grant);
    });
  });

  const pathOf = (name: string): string =>
    `/apis/access.drawbridge.dev/v1alpha1/namespaces/${stage.namespace}/${accessSessions.plural}/${name}`;
});

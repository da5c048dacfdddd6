import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client } from '../../support/client.ts';

describe('a person who asks drawbridge', () => {
  let stage: AccessStage;
  let client: Client;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
  });
  after(() => stage?.close());

  it('who has access, and who entered', async () => {
    await stage.createReady(stage.alice, execRequest('reads', { duration: '10m', reason: 'INC-42' }));
    await stage.createReady(stage.carol, podRequest('debugs', { duration: '10m' }));
    await client.ok(stage.carol, 'exec', 'debugs', '--', 'true');
    const [header, ...rows] = (await client.ok(stage.alice, 'who')).trimEnd().split('\n');
    assert.match(header ?? '', /^WHO +STATE +REQUEST +POD +UNTIL +APPROVED BY +REASON$/);
    assert.match(rows.join('\n'), /^alice +Open +exec\/reads +payments-\S+ +\S+Z +- +INC-42$/m);
    assert.match(rows.join('\n'), /^carol +Open +pod\/debugs +debugs-\S+-access +\S+Z +- +-$/m);
    const journal = ['--journal', stage.server.auditFile, '--since', '1h'];
    await stage.auditLine('the exec of carol', ({ event, who }) => event === 'exec' && who.user === 'carol');
    const entries = (await client.ok(stage.alice, 'who', ...journal)).split('\n\n')[1] ?? '';
    assert.match(entries, /^\S+Z +carol +exec allowed +\S+ +debugs-\S+-access +debugs$/m);
  });

  it('who can approve, or what the template asks for if the bindings cannot be read', async () => {
    const patch = JSON.stringify({
      spec: { accessConfig: { approvals: { all: [{ name: 'peer', groups: ['leads'] }] } } },
    });
    await stage.kubectl('patch', 'eat', 'payments-exec', '--type=merge', '-p', patch);
    const rules = [
      { apiGroups: ['crds.wizardofoz.co'], resources: ['*'], resourceNames: ['payments-exec'], verbs: ['approve'] },
    ];
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    await stage.apply({ apiVersion, kind: 'Role', metadata: { name: 'lead' }, rules });
    await stage.kubectl('create', 'rolebinding', 'leads', '--role=lead', '--group=leads', '--user=carol');
    const explained = await client.ok(stage.alice, 'explain', 'payments-exec');
    const [, command = ''] =
      /^note +approvals +after .* approvals \(peer: 1 of group leads\); to see who can approve, if you may read bindings and roles: drawbridge (.*)$/m.exec(
        explained,
      ) ?? [];
    assert.match(explained, /^not checked +running-pod +access opens only in a running pod of the workload; /m);
    assert.match((await client.run(client.admin, ...command.split(' '))).stdout, /^Group +leads /m, explained);
    const { stdout, stderr } = await client.run(client.admin, 'approvers', 'payments-exec');
    assert.match(stderr, /^needed: peer: 1 of group leads$/m);
    assert.match(stdout, /^Group +leads +peer +RoleBinding leads$/m);
    assert.match(stdout, /^User +carol +as their groups allow +RoleBinding leads$/m);
    const blind = await client.run(stage.alice, 'approvers', 'payments-exec');
    assert.equal(blind.code, 0);
    assert.equal(blind.stdout, '');
    assert.match(
      blind.stderr,
      /^needed: peer: 1 of group leads\nnot checked: who can approve, because you may not read the RoleBindings of namespace \S+ or the ClusterRoleBindings; ask an administrator\n$/,
    );
    assert.doesNotMatch(await client.ok(client.admin, 'approvers', 'payments-shell'), /leads|carol/);
  });

  it('what the journal says, and whether it is unchanged', async () => {
    await stage.kubectl('patch', 'par', 'debugs', '--type=merge', '-p', '{"spec":{"revoked":true}}');
    await stage.auditLine('the end', ({ event, what }) => event === 'revocation' && what.name === 'debugs');
    const file = stage.server.auditFile;
    const report = await client.ok(client.admin, 'audit', 'report', file, '--since', '1h');
    assert.match(report, /^GRANTED +ENDED +END +WHO +NAMESPACE +TEMPLATE +POD +APPROVED BY +WHY +ENDED BY +REVIEW$/m);
    assert.match(
      report,
      /^\S+Z +\S+Z +Revoked +carol +\S+ +payments-shell +debugs-\S+-access +- +- +sandbox-admin +-$/m,
    );
    const csv = await client.ok(client.admin, 'audit', 'report', file, '-o', 'csv');
    assert.match(csv, /^granted,ended,end,who,namespace,template,pod,approvedBy,why,until,request,endedBy,review\r$/m);
    assert.match(csv, /,alice,[^,]+,payments-exec,[^,]+,,INC-42,/);
    // Other servers of this plane signed heads, too, so the verdict is about more than this file.
    const isSigned = async (): Promise<boolean> => {
      const { stdout } = await client.run(client.admin, 'audit', 'verify', file, '-n', 'drawbridge-system');
      return /lines 1 to \d+, signed to \d+/.test(stdout);
    };
    await until('a signed head', isSigned, { timeoutMs: 30_000, everyMs: 500 });
    const changed = join(stage.plane.directory, 'changed.jsonl');
    await writeFile(
      changed,
      '{"chain":"000000000000000000000000","seq":1,"time":"2026-11-23T07:00:00Z","prev":"","hash":""}\n',
    );
    const { code, stdout } = await client.run(client.admin, 'audit', 'verify', changed, '-n', 'drawbridge-system');
    assert.equal(code, 1);
    assert.match(stdout, /^CHANGED: /m);
  });
});

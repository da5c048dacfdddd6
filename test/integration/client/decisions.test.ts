import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { letApprove } from '../../support/approvers.ts';
import { Client, type ClientResult, type RunningClient } from '../../support/client.ts';

describe('a person who uses drawbridge to decide', () => {
  let stage: AccessStage;
  let client: Client;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
    const approvals = { all: [{ name: 'peer', groups: ['devs'] }] };
    const accessConfig = { approvals, extension: { times: 2, total: '8h', approvals: 'Same' } };
    const patch = JSON.stringify({ spec: { accessConfig } });
    await stage.kubectl('patch', 'pat', 'payments-shell', '--type=merge', '-p', patch);
    await stage.templateReady('PodAccessTemplate', 'payments-shell');
    await letApprove(stage, 'alice', 'carol');
  });
  after(() => stage?.close());

  /** Starts a request of alice, and resolves once it waits for approvals. */
  const ask = async (name: string): Promise<RunningClient> => {
    const args = ['request', 'pod', 'payments-shell', '--name', name, '--for', '30m', '--reason', 'INC-42'];
    const running = client.start(stage.alice, ...args);
    await until(`${name} to wait`, () => running.soFar().stderr.includes('peer 0 of 1'), { timeoutMs: 30_000 });
    return running;
  };
  const ended = async (running: RunningClient, code: number, stderr: RegExp): Promise<ClientResult> => {
    const result = await running.ended;
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stderr, stderr);
    return result;
  };

  it('sees what waits, what it would open, and approves less', async () => {
    const running = await ask('less');
    assert.match(
      await client.ok(stage.carol, 'pending'),
      /^less +pod +payments-shell +alice +Access +30m +\S+Z +approve, deny +INC-42$/m,
    );
    const shown = await client.ok(stage.carol, 'show', 'less');
    assert.match(shown, /^Permissions: +get, list, watch pods\n +create, get pods\/exec\n +on the one pod only$/m);
    assert.match(shown, /^ +command:\n +- sh$/m);
    assert.doesNotMatch(shown, /: false$/m, 'fields of the template that change nothing');
    assert.match(shown, /^Must approve: +peer: 1 of group devs$/m);
    const approved = await client.ok(stage.carol, 'approve', 'less', '--max', '20m', '--reason', 'ticket checked');
    assert.equal(approved, 'podaccessrequest.crds.wizardofoz.co/less approved\n');
    await ended(running, 0, /access is open until \S+ \(in (20m|1[89]m(\d+s)?)\)/);
    assert.match(await client.ok(stage.alice, 'get', 'less'), /carol: Approve at most 20m because "ticket checked"$/m);
    assert.equal(await client.ok(stage.carol, 'pending'), '');
  });

  it('sees when access would end with an extension, and approves less of it', async () => {
    const running = client.start(stage.alice, 'extend', 'less', '--by', '12h', '--reason', 'still reading');
    const isPending = async (): Promise<boolean> =>
      /^less .* Extension-1 +12h more, until \S+Z +\S+Z +approve, deny +still reading$/m.test(
        await client.ok(stage.carol, 'pending'),
      );
    await until('the extension to wait for carol', isPending, { timeoutMs: 30_000, everyMs: 200 });
    const shown = await client.ok(stage.carol, 'show', 'less');
    assert.match(shown, /^Extensions: +2 times, until access has lasted 8h, each after the same approvals as access$/m);
    assert.match(shown, /^What Extension-1 would do\nAsked: +12h more\nNew end: +\S+Z \(in 7h\w+\) at the latest$/m);
    await client.ok(stage.carol, 'approve', 'less', '--max', '5m');
    const { stderr } = await ended(running, 0, /access is open until/);
    const [, end] = /^access is open until (\S+Z) \(in 2[0-5]m/m.exec(stderr) ?? [];
    const granted = `^Extensions: +by 12h, because "still reading": Granted, until ${end}$`;
    assert.match(await client.ok(stage.alice, 'get', 'less'), new RegExp(granted, 'm'));
  });

  it('approves only the version of the template that they saw', async () => {
    const running = await ask('edited');
    const versionIn = (shown: string): string => /^Approve this: .* --template-version (\S+)$/m.exec(shown)?.[1] ?? '';
    const seen = versionIn(await client.ok(stage.carol, 'show', 'edited'));
    const edit = JSON.stringify({ spec: { accessConfig: { maxDuration: '3h' } } });
    // The times of the edit and of the request have whole seconds.
    const asked = Date.parse(
      await stage.kubectl('get', 'par', 'edited', '-o', 'jsonpath={.metadata.creationTimestamp}'),
    );
    await until('the next second', () => Date.now() >= asked + 1000, { timeoutMs: 5000, everyMs: 50 });
    await stage.kubectl('patch', 'pat', 'payments-shell', '--type=merge', '-p', edit);
    for (const flags of [[], ['--template-version', seen]]) {
      const { code, stderr } = await client.run(stage.carol, 'approve', 'edited', ...flags);
      assert.equal(code, 1, stderr);
      assert.match(stderr, flags.length === 0 ? /was changed at \S+, after the request/ : /has changed: /);
    }
    const now = versionIn(await client.ok(stage.carol, 'show', 'edited'));
    assert.notEqual(now, seen);
    // Another client names the older version: the server denies it.
    const [generation = ''] = seen.split('.');
    const uid = await stage.kubectl('get', 'pat', 'payments-shell', '-o', 'jsonpath={.metadata.uid}');
    const template = { kind: 'PodAccessTemplate', name: 'payments-shell', uid, generation: Number(generation) };
    const vote = {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'AccessVote',
      metadata: { generateName: 'vote-' },
      spec: { request: { kind: 'PodAccessRequest', name: 'edited' }, template, decision: 'Approve' },
    };
    const votes = `/apis/access.drawbridge.dev/v1alpha1/namespaces/${stage.namespace}/accessvotes`;
    const answer = await stage.carol.call('POST', votes, vote);
    assert.match(JSON.stringify(answer), /TemplateChanged: .*the vote is for generation/);
    await client.ok(stage.carol, 'approve', 'edited', '--template-version', now);
    await ended(running, 0, /access is open until/);
    await client.ok(stage.alice, 'revoke', 'edited');
  });
});

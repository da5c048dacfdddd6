import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { type Caller, Client } from '../../support/client.ts';

describe('after a mistake, the client prints what to type instead', () => {
  let stage: AccessStage;
  let client: Client;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
  });
  after(() => stage?.close());

  const fails = async (person: Caller, code: number, ...args: string[]): Promise<string> => {
    const result = await client.run(person, ...args);
    assert.equal(result.code, code, result.stdout + result.stderr);
    return result.stderr;
  };

  it('a name that a request has already', async () => {
    await client.ok(stage.alice, 'request', 'pod', 'payments-shell', '--name', 'twice');
    const text = await fails(stage.alice, 1, 'request', 'pod', 'payments-shell', '--name', 'twice');
    assert.equal(
      text,
      `drawbridge: a request twice exists already in namespace ${stage.namespace}; choose another --name, or see it with: drawbridge get pod/twice -n ${stage.namespace}\n`,
    );
  });

  /** The command that follows `label` in a message, run by kubectl as alice. */
  const runs = async (text: string, label: string): Promise<string> => {
    const [, command = ''] = new RegExp(`${label}: kubectl ([^;\\n]+)`).exec(text) ?? [];
    assert.notEqual(command, '', text);
    return (await stage.alice.kubectl(command.split(' '))).stdout;
  };

  it('a name that a denied request still has', async () => {
    const ask = ['request', 'exec', 'payments-exec', '--name', 'refused'];
    assert.match(await fails(stage.alice, 3, ...ask, '--pod', 'nobody'), /refused was denied: InvalidTargetPod: /);
    const again = await fails(stage.alice, 1, ...ask);
    assert.match(
      again,
      /^drawbridge: a request refused exists already in namespace \S+, and has ended \(Denied\); to delete/,
    );
    assert.ok(again.includes('; choose another --name, or see it with: drawbridge get exec/refused -n '), again);
    const revoked = await fails(stage.alice, 3, 'revoke', 'refused');
    assert.match(
      revoked,
      /refused was denied: InvalidTargetPod: .*; to delete it: kubectl delete execaccessrequest refused -n /,
    );
    await runs(revoked, 'to delete it');
    await client.ok(stage.alice, ...ask);
  });

  it('a request that has ended', async () => {
    await client.ok(stage.alice, 'request', 'exec', 'payments-exec', '--name', 'ended');
    const { uid } = (await stage.read('ExecAccessRequest', 'ended'))?.metadata ?? {};
    assert.ok(uid);
    await client.ok(stage.alice, 'revoke', 'ended', '--reason', 'done');
    const isGone = async (): Promise<boolean> => (await stage.read('ExecAccessRequest', 'ended')) === undefined;
    await until('the request to go', isGone, { timeoutMs: 30_000 });
    const text = await fails(stage.alice, 1, 'get', 'ended');
    assert.match(
      text,
      /^drawbridge: no request ended in namespace \S+; if it has ended, its Events say why: kubectl get events /,
    );
    // The server sends Events without waiting for them.
    const isTold = async (): Promise<boolean> =>
      /access ended: the request was revoked: done/.test(await runs(text, 'its Events say why'));
    await until('the Event of the end', isTold, { timeoutMs: 30_000 });
  });

  it('a flag that the template does not allow, and a template that does not exist', async () => {
    const at = await fails(stage.alice, 3, 'request', 'pod', 'payments-shell', '--at', '1h');
    assert.match(at, /spec\.startAt is set; .* \(spec\.startAt is --at\)/);
    const missing = await fails(stage.alice, 3, 'request', 'pod', 'payments-shel');
    assert.match(missing, new RegExp(`; with this client: drawbridge templates -n ${stage.namespace}$`, 'm'));
  });

  it('access that was opened for another person, but no failed command of their own', async () => {
    const text = await fails(stage.carol, 1, 'exec', 'twice', '--', 'id');
    const note = `note: twice was opened for alice, not for carol; for access of your own: drawbridge request pod payments-shell -n ${stage.namespace}`;
    assert.equal(text.trimEnd().split('\n').at(-1), note, text);
    assert.doesNotMatch(await fails(stage.alice, 1, 'exec', 'twice', '--', 'false'), /note:/);
  });

  it('a template that cannot open access: it says that the request would be denied, and why', async () => {
    const patch = JSON.stringify({ spec: { controllerTargetMutationConfig: { defaultContainerName: 'main' } } });
    await stage.kubectl('patch', 'pat', 'payments-shell', '--type=merge', '-p', patch);
    await stage.templateReady('PodAccessTemplate', 'payments-shell', false);
    const input = await stage.kubectl('get', 'pat', 'payments-shell', '-o', 'json');
    const checked = await client.run({ ...client.admin, input }, 'check', '-f', '-');
    assert.equal(checked.code, 3, checked.stderr);
    assert.match(
      checked.stdout,
      /^PodAccessTemplate\/payments-shell +fail +plan +InvalidTemplate: \S+defaultContainerName /m,
    );
    const explained = await client.run(stage.alice, 'explain', 'payments-shell');
    assert.equal(explained.code, 3, explained.stderr);
    assert.match(
      explained.stdout,
      /^fail +InvalidTemplate +ask the author of the template to correct this: \S+defaultContainerName names the container "main"; .*: name one of these$/m,
    );
    assert.match(
      explained.stderr,
      /^drawbridge: the server would accept it, and probably deny it then: see what fails above$/m,
    );
    const templates = await client.ok(stage.alice, 'templates', '-o', 'wide');
    assert.match(templates.split('\n')[0] ?? '', / REASON TO GIVE +OPTIONS +PROBLEM$/);
    assert.match(templates, /^payments-shell +pod +false .* optional +- +\S+ names the container "main"/m);
  });
});

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccessStage } from '../../support/access-stage.ts';
import { type Caller, Client } from '../../support/client.ts';
import { commandLinesIn } from '../../support/command-lines.ts';
import { commandsOf, runAsReader, scriptOf, tryAsReader } from '../../support/page-commands.ts';
import type { Person } from '../../support/person.ts';
import { shown } from '../../support/shown-output.ts';

const page = readFileSync(new URL('../../../docs/tasks/request-access.md', import.meta.url), 'utf8');
/** The text of a section, without its heading. */
const section = (title: string): string => page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
const shell = section('Get a shell in three commands');

/** The kubeconfigs have the server, its CA, and a client certificate; no namespace. */
describe('a newcomer with a fresh kubeconfig and an empty home, by the commands of request-access.md', () => {
  let stage: AccessStage;
  let client: Client;
  let home: string;
  /** The name of the request of alice. */
  let request = '';

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client({ plane: stage.plane });
    home = mkdtempSync(join(tmpdir(), 'drawbridge-home-'));
  });
  after(async () => {
    rmSync(home, { recursive: true, force: true });
    await stage?.close();
  });

  const as = ({ kubeconfig }: Person, more: Partial<Caller> = {}): Caller => ({ kubeconfig, home, ...more });
  /** The only line of the page that begins so, for this namespace and request. */
  const lineOf = (command: string, text = page): string[] => {
    const found = commandLinesIn(text).filter((words) => words.join(' ').startsWith(command));
    assert.equal(found.length, 1, `the lines of the page that begin with ${command}`);
    return (found[0] ?? []).map((word, at, { [at - 1]: before }) =>
      before === '-n' ? stage.namespace : word === 'payments-shell-x7k2p' ? request : word,
    );
  };

  it('installs the client with the first command', async () => {
    const [install, ...others] = scriptOf('docs/tasks/request-access.md', 'make npm').trim().split('\n');
    // The tests of the package install it so.
    assert.equal(install, 'make npm && npm install --global ./dist/npm');
    assert.equal(others.length, 2);
    assert.deepEqual(await readdir(home), []);
  });

  it('sees with the second which templates there are', async () => {
    const rows = await client.ok(as(stage.alice), ...lineOf('templates', shell));
    assert.match(rows, /^payments-shell +pod +true +1h, max 4h +devs, sre +none needed$/m);
  });

  it('has a shell with the third, and is told when access ends', async () => {
    const input = 'echo "this shell adds: $((40 + 2))"; exit\n';
    const { code, stdout, stderr } = await client.run(as(stage.alice, { input }), ...lineOf('request pod', shell));
    assert.deepEqual([code, stdout], [0, 'this shell adds: 42\n'], stderr);
    assert.match(stderr, shown('tasks/request-access.md', 'created'));
    [, request = ''] = /^created podaccessrequest\.crds\.wizardofoz\.co\/(\S+)$/m.exec(stderr) ?? [];
    assert.match(request, /^payments-shell-\w+$/);
  });

  it('learns in one command when access ends', async () => {
    const list = await client.ok(as(stage.alice), ...lineOf('list'));
    assert.match(list, new RegExp(`^${request} +pod +payments-shell +Open +2[89]m(\\d+s)? `, 'm'));
    const details = await client.ok(as(stage.alice), ...lineOf('get'));
    assert.match(details, /^Ends: +\S+Z \(in 2[89]m(\d+s)?\)$/m);
  });

  it('has access without the client, by the commands for kubectl', async () => {
    const path = 'docs/tasks/request-access.md';
    const reader = { plane: stage.plane, folder: home, kubeconfig: stage.alice.kubeconfig };
    const [templates, create, watch = '', access, message = '', remove = ''] = commandsOf(path, 'request.yaml').map(
      (line) => line.replace('-n payments', `-n ${stage.namespace}`),
    );
    const [manifest = ''] = /(?<=```yaml\n)[^`]*/.exec(section('With kubectl alone')) ?? [];
    writeFileSync(join(home, 'request.yaml'), manifest.replace('namespace: payments', `namespace: ${stage.namespace}`));
    assert.match(await runAsReader(reader, `${templates}`), /^NAME .* GROUPS +DURATION +MAX +APPROVALS +REASON +WHY$/m);
    const created = await runAsReader(reader, `${create}`);
    const [, name = ''] = /\/(\S+) created$/m.exec(created) ?? [];
    await stage.ready({ kind: 'PodAccessRequest', metadata: { name, uid: '' } });
    const { stdout: watched } = await tryAsReader(reader, `timeout 3 ${watch}`);
    assert.match(watched, new RegExp(`^${name} .* Open `, 'm'));
    const all = await tryAsReader(reader, `${access}`);
    assert.equal(all.code, 1);
    assert.match(all.stderr, /Forbidden/i);
    assert.match(all.stdout, new RegExp(`/${name} `));
    const given = new RegExp(`^kubectl exec -ti -n ${stage.namespace} ${name}-\\S+ -- /bin/sh$`);
    assert.match(await runAsReader(reader, message.replace('NAME', name)), given);
    assert.match(await runAsReader(reader, remove.replace('NAME', name)), /deleted/);
  });

  it('has completion by the line of the page', async () => {
    const script = scriptOf('docs/tasks/request-access.md', 'completion bash');
    const reader = { plane: stage.plane, folder: home };
    assert.match(await runAsReader(reader, `${script}\ncomplete -p drawbridge`), /^complete .*drawbridge$/m);
  });

  it('learns in one command who is in the namespace', async () => {
    const who = await client.ok(as(stage.bob), ...lineOf('who'));
    assert.match(who, new RegExp(`^alice +Open +pod/${request} +${request}-\\S+ +\\S+Z +- +INC-42 disk full$`, 'm'));
  });

  it('is told why a request is denied, and learns in one command what is missing', async () => {
    const denied = await client.run(as(stage.bob), ...lineOf('request pod', shell));
    assert.deepEqual([denied.code, denied.stdout], [3, ''], denied.stderr);
    assert.match(denied.stderr, /^drawbridge: denied: NotEligible: .*ask for membership in one of these groups/);
    const { code, stdout, stderr } = await client.run(as(stage.bob), ...lineOf('explain'));
    assert.equal(code, 3, stderr);
    assert.match(stdout, /^fail +eligible +join one of \[devs, sre\]$/m);
  });

  it('learns in one command why an approver denied a request', async () => {
    const patch = JSON.stringify({ spec: { accessConfig: { approvals: { all: [{ name: 'peer' }] } } } });
    await stage.kubectl('patch', 'pat', 'payments-shell', '--type=merge', '-p', patch);
    await stage.templateReady('PodAccessTemplate', 'payments-shell');
    const ask = lineOf('request pod', shell).map((word) => (word === '--exec' ? '--no-wait' : word));
    const name = await client.ok(as(stage.carol), ...ask);
    request = name.trim().split('/')[1] ?? '';
    const admin = { kubeconfig: stage.plane.adminKubeconfig };
    await client.ok(admin, 'deny', request, '-n', stage.namespace, '--reason', 'use staging');
    await client.run(as(stage.carol), 'watch', request, '-n', stage.namespace);
    const details = await client.ok(as(stage.carol), ...lineOf('get'));
    assert.match(details, /^State: +Denied\nDenied: +\w+: .*use staging/m);
    assert.match(details, /^To do: +\S/m);
  });
});

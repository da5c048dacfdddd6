import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { userRoles } from '../../../sandbox/installation.ts';
import { until } from '../../../sandbox/wait.ts';
import { podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client } from '../../support/client.ts';
import { commandLinesIn } from '../../support/command-lines.ts';
import { Person } from '../../support/person.ts';
import { shown } from '../../support/shown-output.ts';

type Answer = readonly [person: 'alice' | 'bob' | 'carol' | 'admin', code: number, text: RegExp];
/** The first line of a page that a row answers, without the program and the namespace, and what the command then says. */
type Row = readonly [line: string, ...answer: Answer];

describe('the commands of the page', () => {
  let stage: AccessStage;
  let client: Client;
  /** The chart's ClusterRoles for people. */
  let roles = '';

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
    roles = (await userRoles(stage.plane)).map((role) => JSON.stringify(role)).join('\n---\n');
    await stage.plane.kubectl(['apply', '-f', '-'], { input: roles });
    const groups = ['--group=secops', '--group=devs'];
    await stage.kubectl('create', 'rolebinding', 'approvers', '--clusterrole=drawbridge-approver', ...groups);
  });
  after(async () => {
    await stage?.plane.kubectl(['delete', '--ignore-not-found', '-f', '-'], { input: roles });
    await stage?.close();
  });

  const setTemplate = async (accessConfig: object): Promise<void> => {
    const patch = JSON.stringify({ spec: { accessConfig } });
    await stage.kubectl('patch', 'pat', 'payments-shell', '--type=merge', '-p', patch);
    await stage.templateReady('PodAccessTemplate', 'payments-shell');
  };
  const pageOf = (page: string): string =>
    readFileSync(new URL(`../../../docs/tasks/${page}`, import.meta.url), 'utf8');
  const linesOf = (page: string): string[][] =>
    commandLinesIn(pageOf(page)).filter(([first]) => first !== 'completion');
  /** Runs the lines in their order, in the namespace of the stage. `prepare` resolves to the name of the request that a line is about. */
  const runAll = async (
    lines: readonly (readonly string[])[],
    rows: readonly Row[],
    prepare: (line: string) => Promise<string>,
  ): Promise<void> => {
    const shown = lines.map((words) => words.filter((_, at) => words[at] !== '-n' && words[at - 1] !== '-n'));
    assert.deepEqual(
      shown.map((words) => words.join(' ')),
      rows.map(([line]) => line),
    );
    for (const [index, [line, who, code, text]] of rows.entries()) {
      const request = await prepare(line);
      const words = (shown[index] ?? []).map((word) => (/-x7k2p$/.test(word) ? request : word));
      const person = who === 'admin' ? { kubeconfig: stage.plane.adminKubeconfig } : stage[who];
      // That access starts in two hours. And no one ends a shell here.
      const isShell = line.startsWith('exec') || line.endsWith('--exec');
      const flags = line.includes('--at') ? ['--no-wait'] : isShell ? ['--', 'true'] : [];
      const found = await client.run(person, ...words, ...flags);
      const output = `${found.stderr}${found.stdout}`;
      assert.equal(found.code, code, `${line}: ${output}`);
      assert.match(output, text, `${line}: ${output}`);
    }
  };
  const peer = { approvals: { all: [{ name: 'peer', groups: ['devs'] }], claimWithin: '1h' } };
  /** Creates a request of alice, and resolves to its name once it waits for approvals. */
  const ask = async (name: string): Promise<string> => {
    const request = await stage.createOk(stage.alice, podRequest(name, { reason: 'INC-42' }));
    const waits = ({ status }: StoredRequest): boolean =>
      status?.conditions?.some(({ type, status: is }) => type === 'AccessApproved' && is === 'Unknown') ?? false;
    await stage.requestUntil('to wait for approvals', request, waits);
    return name;
  };
  const namesOf = async (): Promise<string[]> =>
    (await client.ok(stage.alice, 'list', '-o', 'name'))
      .trim()
      .split('\n')
      .map((name) => name.split('/')[1] ?? '');

  it('request-access', async () => {
    const open = /access is open until \S+Z \(in /;
    let request = '';
    await runAll(
      linesOf('request-access.md'),
      [
        ['templates', 'alice', 0, /^payments-shell +pod +true +1h, max 4h +devs, sre +none needed$/m],
        ['request pod payments-shell --for 30m --reason INC-42 disk full --exec', 'alice', 0, open],
        ['watch payments-shell-x7k2p', 'alice', 0, open],
        ['exec payments-shell-x7k2p', 'alice', 0, /^$/],
        ['revoke payments-shell-x7k2p', 'alice', 0, /revocation requested; the server closes the access$/m],
        ['list', 'alice', 0, /^payments-shell-\w+ +pod +payments-shell +(Ending|Revoked) /m],
        ['get payments-shell-x7k2p', 'alice', 0, /^State: +(Ending|Revoked)$/m],
        ['explain payments-shell', 'bob', 3, shown('troubleshoot-access.md', 'VERDICT')],
        ['approvers payments-shell', 'alice', 0, /^the template requires no approvals$/m],
        ['who', 'alice', 0, /^alice +Open +pod\/other +other-\S+ +\S+Z /m],
        ['request pod payments-shell --at 2h', 'alice', 0, /^created \S+\/payments-shell-\w+$/m],
        ['claim payments-shell-x7k2p', 'alice', 0, open],
        ['extend payments-shell-x7k2p --by 30m', 'alice', 0, /extended until \S+Z$/m],
      ],
      async (line) => {
        if (line.startsWith('watch')) [request = ''] = await namesOf();
        if (line.includes('--at')) await setTemplate({ start: { maxAhead: '3h' } });
        if (line.startsWith('claim')) {
          await setTemplate({ ...peer, extension: { times: 1, total: '8h', approvals: 'None' } });
          request = await ask('later');
          await client.ok(stage.carol, 'approve', request);
        }
        if (line.startsWith('who')) await stage.createReady(stage.alice, podRequest('other', { duration: '10m' }));
        return request;
      },
    );
  });

  it('approve-access', async () => {
    await setTemplate({ ...peer, start: null });
    let request = await ask('first');
    await runAll(
      linesOf('approve-access.md'),
      [
        ['pending', 'carol', 0, shown('approve-access.md', 'DECIDE BY')],
        ['show debug-x7k2p', 'carol', 0, /^Permissions: /m],
        ['approve debug-x7k2p --max 20m --reason ticket checked', 'carol', 0, /\/first approved$/m],
        ['deny debug-x7k2p --reason use staging', 'carol', 0, /\/second denied$/m],
        ['revoke --user alice -A', 'admin', 0, /\/first of alice: revocation requested in \S+; /],
      ],
      async (line) => {
        if (line.startsWith('deny')) request = await ask('second');
        return request;
      },
    );
  });

  it('extend-access', async () => {
    await setTemplate({ approvals: null, extension: { times: 1, total: '8h' } });
    await stage.createReady(stage.alice, podRequest('debug', { duration: '25m' }));
    const extended = shown('extend-access.md', 'extended until');
    await runAll(linesOf('extend-access.md'), [['extend debug --by 30m --reason INC-42', 'alice', 0, extended]], () =>
      Promise.resolve('debug'),
    );
  });

  it('require-approvals', async () => {
    const all = [
      { name: 'peer', groups: ['devs'] },
      { name: 'security', groups: ['secops'] },
    ];
    await setTemplate({ approvals: { all }, extension: null });
    const row: Row = ['approvers payments-shell', 'admin', 0, shown('require-approvals.md', 'needed')];
    await runAll(linesOf('require-approvals.md'), [row], () => Promise.resolve(''));
    const asked = client.start(stage.alice, 'request', 'pod', 'payments-shell');
    const waits = shown('require-approvals.md', 'waiting for approvals');
    await until('the client to say for whom it waits', () => Promise.resolve(waits.test(asked.soFar().stderr)), {
      timeoutMs: 30_000,
    });
    asked.kill('SIGTERM');
    await asked.ended;
  });

  it('write-a-template', async () => {
    const [, manifest = ''] = /```yaml\n([\s\S]*?)```/.exec(pageOf('write-a-template.md')) ?? [];
    const file = join(stage.plane.directory, 'template.yaml');
    writeFileSync(
      file,
      manifest.replace(/^ {3}/gm, '').replace('namespace: payments', `namespace: ${stage.namespace}`),
    );
    const [, lines = ''] =
      /```sh\n(kubectl create role template-authors[\s\S]*?)```/.exec(pageOf('write-a-template.md')) ?? [];
    for (const line of lines.trim().replaceAll('\\\n', ' ').split('\n')) {
      const [, ...args] = line.split(/ +/).map((word) => (word === 'payments' ? stage.namespace : word));
      await stage.plane.kubectl(args);
    }
    await stage.kubectl('create', 'rolebinding', 'owners', '--clusterrole=admin', '--group=payments-leads');
    const olga = await Person.of(stage.plane, 'olga', ['payments-leads']);
    await stage.kubectl('delete', 'pat/payments-shell', 'deployment/payments');
    const checked = await client.run(olga, 'check', '-f', file);
    assert.equal(checked.code, 3, checked.stderr);
    assert.match(checked.stdout, shown('write-a-template.md', 'VERDICT'));
    await stage.applyFiles('examples/workload.yaml');
    const kubectl = async (...args: string[]) => (await olga.kubectl([...args, '-n', stage.namespace])).stdout;
    assert.match(await kubectl('apply', '-f', file), shown('write-a-template.md', 'created'));
    const ready = shown('write-a-template.md', 'READY');
    const isReady = async () => ready.test(await kubectl('get', 'podaccesstemplate'));
    await until('the template to be ready', isReady, { timeoutMs: 30_000 });
  });
});

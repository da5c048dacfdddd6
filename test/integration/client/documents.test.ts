import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { userRoles } from '../../../sandbox/installation.ts';
import { until } from '../../../sandbox/wait.ts';
import { podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { type Caller, Client } from '../../support/client.ts';
import { commandLinesIn } from '../../support/command-lines.ts';
import { commandsOf, runAsReader, scriptOf, valuesOf } from '../../support/page-commands.ts';
import { Person } from '../../support/person.ts';
import { shown } from '../../support/shown-output.ts';

type Answer = readonly [person: 'alice' | 'bob' | 'carol' | 'admin', code: number, text: RegExp];
/** The first line of a page that a row answers, without the program and the namespace, and what the command then says. */
type Row = readonly [line: string, ...answer: Answer];

/** A line that ends with the code of a denial. */
const denied = (line: string): string => `${line.trim()} && exit 1 || [ $? = 3 ]`;

describe('the commands of the page', () => {
  let stage: AccessStage;
  let client: Client;
  /** Alice, on call. */
  let alice: Person;
  /** The chart's ClusterRoles for people. */
  let roles = '';

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
    roles = (await userRoles(stage.plane)).map((role) => JSON.stringify(role)).join('\n---\n');
    await stage.plane.kubectl(['apply', '-f', '-'], { input: roles });
    alice = await Person.of(stage.plane, 'alice', ['devs', 'oncall']);
    const approvers = await follow('require-approvals', 'kubectl create rolebinding', client.admin);
    assert.match(approvers, shown('tasks/require-approvals.md', 'rolebinding.rbac'));
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
  /** Runs the block of a page that contains the words, in the namespace of the stage, about a request; resolves with what it prints. */
  const follow = (page: string, words: string, person: Caller, request = ''): Promise<string> =>
    runHere(scriptOf(`docs/tasks/${page}.md`, words), person, request);
  const runHere = async (lines: string, { kubeconfig }: Caller, request = ''): Promise<string> => {
    const script = lines.replaceAll('-n payments', `-n ${stage.namespace}`);
    const reader = { plane: stage.plane, folder: stage.plane.directory, kubeconfig };
    const output = await runAsReader(reader, script.replaceAll(/REQUEST|[a-z-]+-x7k2p/g, request));
    return output.replaceAll(`-n ${stage.namespace}`, '-n payments');
  };
  /** Sets what the only YAML block of a page with these words sets. */
  const setAsIn = (page: string, words: string): Promise<void> =>
    setTemplate(valuesOf(`docs/tasks/${page}.md`, words).spec.accessConfig);
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
      const person = who === 'admin' ? client.admin : who === 'alice' ? alice : stage[who];
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
        ['explain payments-shell', 'bob', 3, /^fail +eligible /m],
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
    const command = await follow('write-a-template', 'accessMessage', alice, request);
    assert.match(command, shown('tasks/write-a-template.md', 'kubectl exec'));
    const explained = await runHere(denied(scriptOf('docs/tasks/troubleshoot-access.md', 'explain')), stage.bob);
    assert.match(explained, shown('tasks/troubleshoot-access.md', 'VERDICT'));
    assert.ok((await follow('backup', 'podaccessrequests,exec', client.admin)).includes(`/${request} `));
    const objects = await follow('troubleshoot-access', 'kubectl get rolebindings', client.admin);
    for (const kind of ['pod', 'role.rbac', 'rolebinding.rbac'])
      assert.match(objects, new RegExp(`^${stage.namespace} +${kind}\\S*/${request}-`, 'm'));
  });

  it('approve-access', async () => {
    await setTemplate({ ...peer, start: null });
    let request = await ask('first');
    await runAll(
      linesOf('approve-access.md'),
      [
        ['pending', 'carol', 0, shown('tasks/approve-access.md', 'DECIDE BY')],
        ['show debug-x7k2p', 'carol', 0, shown('tasks/approve-access.md', 'Permissions:')],
        [
          'approve debug-x7k2p --max 20m --reason ticket checked',
          'carol',
          0,
          shown('tasks/approve-access.md', 'approved'),
        ],
        ['deny debug-x7k2p --reason use staging', 'carol', 0, shown('tasks/approve-access.md', 'denied')],
        ['revoke --user alice -A', 'admin', 0, /\/first of alice: revocation requested in \S+; /],
      ],
      async (line) => {
        if (line.startsWith('deny')) request = await ask('second');
        return request;
      },
    );
  });

  it('approve-access, without the client', async () => {
    const page = 'docs/tasks/approve-access.md';
    const { metadata, ...vote } = valuesOf(page, 'kind: AccessVote');
    const cast = async (name: string, ...as: string[]): Promise<void> => {
      const { generateName } = metadata;
      const input = JSON.stringify({ ...vote, metadata: { generateName } }).replace('debug-x7k2p', name);
      await stage.plane.kubectl(['create', '-n', stage.namespace, '-f', '-', ...as], { input });
      const request = { kind: 'PodAccessRequest', metadata: { name, uid: '' } };
      await stage.requestUntil('to be approved', request, ({ status }) => status?.approval?.state === 'Claimable');
    };
    await cast(await ask('third'), '--as=carol', '--as-group=devs', '--as-group=system:authenticated');
    await setTemplate({ approvals: { all: [{ name: 'program' }], serviceAccounts: true } });
    await stage.apply(valuesOf(page, 'approve-on-call'));
    const to = [`--serviceaccount=${stage.namespace}:on-call`, '--role=approve-on-call'];
    await stage.kubectl('create', 'rolebinding', 'approve-on-call', ...to);
    const program = `system:serviceaccount:${stage.namespace}:on-call`;
    await stage.allowed(program, { verb: 'create', group: 'access.drawbridge.dev', resource: 'accessvotes' });
    await cast(await ask('fourth'), `--as=${program}`);
    await stage.kubectl('delete', 'rolebinding', 'approve-on-call');
  });

  it('extend-access', async () => {
    await setTemplate({ approvals: null });
    await setAsIn('extend-access', 'extension:');
    const request = await stage.createReady(stage.alice, podRequest('debug', { duration: '25m' }));
    const patched = await follow('extend-access', '/spec/extensions', alice);
    assert.match(patched, /\/debug patched$/m);
    await stage.requestUntil('to be extended', request, ({ status }) => status?.extensions?.[0]?.state === 'Granted');
    const extended = shown('tasks/extend-access.md', 'extended until');
    await runAll(linesOf('extend-access.md'), [['extend debug --by 30m --reason INC-42', 'alice', 0, extended]], () =>
      Promise.resolve('debug'),
    );
    await stage.alice.call('DELETE', stage.urlOf(request.kind, 'debug'));
    await stage.closed(request);
    await setAsIn('extend-access', 'claimWithin');
    await client.ok(stage.carol, 'approve', await ask('debug'));
    const claimed = await follow('extend-access', 'kubectl wait', alice);
    assert.match(claimed, shown('tasks/extend-access.md', 'condition met'));
    await stage.ready(request);
  });

  it('emergency-access', async () => {
    await setTemplate({ approvals: null, extension: null });
    await setAsIn('emergency-access', 'emergency:');
    const earlier = await namesOf();
    let request = '';
    await runAll(
      linesOf('emergency-access.md'),
      [
        [
          'request pod payments-shell --emergency --reason the database does not answer',
          'alice',
          0,
          shown('tasks/emergency-access.md', 'created'),
        ],
        ['pending', 'carol', 0, shown('tasks/emergency-access.md', 'DECIDE BY')],
        [
          'approve payments-shell-x7k2p --about Review --reason the journal shows only the restart',
          'carol',
          0,
          shown('tasks/emergency-access.md', 'Review approved'),
        ],
      ],
      async (line) => {
        if (line === 'pending') {
          [request = ''] = (await namesOf()).filter((one) => !earlier.includes(one));
          await client.ok(stage.alice, 'revoke', request);
          await stage.requestUntil(
            'to owe a review',
            { kind: 'PodAccessRequest', metadata: { name: request, uid: '' } },
            ({ status }) => status?.ended !== undefined,
          );
        }
        return request;
      },
    );
    await setTemplate({ emergency: null });
  });

  it('require-approvals', async () => {
    await setTemplate({ approvals: null });
    await setAsIn('require-approvals', 'secops');
    const row: Row = ['approvers payments-shell', 'admin', 0, shown('tasks/require-approvals.md', 'needed')];
    await runAll(linesOf('require-approvals.md'), [row], () => Promise.resolve(''));
    const asked = client.start(stage.alice, 'request', 'pod', 'payments-shell');
    const waits = shown('tasks/require-approvals.md', 'waiting for approvals');
    await until('the client to say for whom it waits', () => Promise.resolve(waits.test(asked.soFar().stderr)), {
      timeoutMs: 30_000,
    });
    asked.kill('SIGTERM');
    await asked.ended;
    for (const words of ['minLength', 'maxAhead'])
      await setTemplate(valuesOf('docs/tasks/require-approvals.md', words));
  });

  it('write-a-template', async () => {
    const [, manifest = ''] = /```yaml\n([\s\S]*?)```/.exec(pageOf('write-a-template.md')) ?? [];
    const file = join(stage.plane.directory, 'template.yaml');
    writeFileSync(
      file,
      manifest.replace(/^ {3}/gm, '').replace('namespace: payments', `namespace: ${stage.namespace}`),
    );
    const authors = await follow('write-a-template', 'kubectl create role', client.admin);
    assert.match(authors, shown('tasks/write-a-template.md', 'template-authors created'));
    await stage.kubectl('create', 'rolebinding', 'owners', '--clusterrole=admin', '--group=payments-leads');
    const olga = await Person.of(stage.plane, 'olga', ['payments-leads']);
    await stage.kubectl('delete', 'pat/payments-shell', 'deployment/payments');
    const checked = await runHere(denied(scriptOf('docs/tasks/write-a-template.md', 'drawbridge check')), olga);
    assert.match(checked, shown('tasks/write-a-template.md', 'VERDICT'));
    await stage.applyFiles('examples/workload.yaml');
    const [apply = '', get = ''] = commandsOf('docs/tasks/write-a-template.md', 'kubectl apply');
    assert.match(await runHere(apply, olga), shown('tasks/write-a-template.md', 'payments-shell created'));
    const ready = shown('tasks/write-a-template.md', 'READY');
    const isReady = async () => ready.test(await runHere(get, olga));
    await until('the template to be ready', isReady, { timeoutMs: 30_000 });
    const requesters = await follow('write-a-template', 'rolebinding requesters', client.admin);
    assert.match(requesters, shown('tasks/write-a-template.md', 'requesters created'));
    const sue = await Person.of(stage.plane, 'sue', ['sre']);
    await stage.createReady(sue, podRequest('by-sue', { duration: '10m' }));
    await stage.kubectl('delete', 'deployment/payments');
    const unready = shown('concepts/ready-templates.md', 'TargetNotFound');
    const isUnready = async () => unready.test(await runHere(get, olga));
    await until('the template to be unready', isUnready, { timeoutMs: 30_000 });
  });
});

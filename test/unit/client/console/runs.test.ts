import assert from 'node:assert/strict';
import { readCommandLine } from '../../../../src/client/args.ts';
import { type ClusterConnection, openConnection } from '../../../../src/client/cluster-connection.ts';
import { commands } from '../../../../src/client/commands.ts';
import { Refusal } from '../../../../src/client/console/call.ts';
import { commandLine, type RunOptions, readRunCall, runCommand } from '../../../../src/client/console/runs.ts';
import type { RunCall } from '../../../../src/client/console/wire.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { advanceIo, until } from '../../../support/io.ts';
import { type Fault, ScriptedCluster } from '../../../support/scripted-cluster.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { request, template } from '../objects.ts';

const body = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const where = {
  connection: { namespace: 'payments' },
  journal: { paths: ['/tmp/j/a.log', '/tmp/j/b.log'], namespace: 'drawbridge-system', heads: [] },
};
const lineOf = (call: RunCall): string => commandLine(readRunCall(body(call)), where).join(' ');
const reason = 'a b --as=root';

const lines: readonly (readonly [call: RunCall, line: string])[] = [
  [{ command: 'templates' }, 'templates -A'],
  [{ command: 'templates', namespace: 'web' }, 'templates --namespace=web'],
  [
    { command: 'explain', args: ['pod/shell'], flags: { for: '1h', reason, at: '2h', emergency: true, pod: 'p' } },
    `explain pod/shell --for=1h --reason=${reason} --at=2h --emergency --pod=p --namespace=payments`,
  ],
  [{ command: 'approvers', args: ['shell'], namespace: 'web' }, 'approvers shell --namespace=web'],
  [
    { command: 'request pod', args: ['shell'], flags: { for: '1h' } },
    'request pod shell --for=1h --no-wait --namespace=payments',
  ],
  [
    { command: 'request exec', args: ['shell'], flags: { pod: '-A' } },
    'request exec shell --pod=-A --no-wait --namespace=payments',
  ],
  [{ command: 'claim', args: ['pod/x'] }, 'claim pod/x --no-wait --namespace=payments'],
  [
    { command: 'extend', args: ['pod/x'], flags: { by: '5m', reason: 'r' } },
    'extend pod/x --by=5m --reason=r --no-wait --namespace=payments',
  ],
  [{ command: 'revoke', args: ['pod/x'], flags: { reason: 'r' } }, 'revoke pod/x --reason=r --namespace=payments'],
  [
    { command: 'approve', args: ['pod/x'], flags: { max: '5m', 'template-version': '3.5f2c', about: 'Access' } },
    'approve pod/x --max=5m --template-version=3.5f2c --about=Access --namespace=payments',
  ],
  [{ command: 'deny', args: ['pod/x', 'pod/y'] }, 'deny pod/x pod/y --namespace=payments'],
  [{ command: 'sessions kill', args: ['id'], namespace: 'web' }, 'sessions kill id --namespace=web'],
  [{ command: 'who', flags: { since: '90d' } }, 'who --since=90d --journal=/tmp/j/a.log --journal=/tmp/j/b.log -A'],
  [{ command: 'audit report', flags: { since: '90d' } }, 'audit report /tmp/j/a.log /tmp/j/b.log --since=90d'],
  [{ command: 'audit verify' }, 'audit verify /tmp/j/a.log /tmp/j/b.log --partial --namespace=drawbridge-system'],
  [{ command: 'binding status' }, 'binding status'],
  [{ command: 'inventory status' }, 'inventory status -A'],
  [{ command: 'inventory why', args: ['prod'], namespace: 'fleet' }, 'inventory why prod --namespace=fleet'],
  [{ command: 'doctor' }, 'doctor'],
];

const refusedCalls: readonly (readonly [what: string, call: unknown])[] = [
  ['no JSON', 'command=templates'],
  ['no object', '[]'],
  ['no command', {}],
  ['a field of every object as a command', { command: 'constructor' }],
  ...['exec', 'use', 'check', 'templates new', 'completion', 'sessions play', 'console', '__complete'].map(
    (command) => [`the command ${command}`, { command }] as const,
  ),
  ...['-A', '--as=root', '--', '-', '', 7, ['x'], null].map(
    (word) => [`the word ${JSON.stringify(word)}`, { command: 'approve', args: [word] }] as const,
  ),
  ['words that are no list', { command: 'approve', args: 'x' }],
  ...['a b', '../x', '--as=root', '', 7, 'A'].map(
    (namespace) => [`the namespace ${JSON.stringify(namespace)}`, { command: 'templates', namespace }] as const,
  ),
  ['flags that are a list', { command: 'templates', flags: ['--as=root'] }],
];

/** Flags that no command of the page may get, by name. */
const neverPassed = [
  'journal',
  'heads',
  'recordings',
  'session',
  'key',
  'kubeconfig',
  'context',
  'as',
  'as-group',
  'as-uid',
  'exec',
  'container',
  'timeout',
  'request-timeout',
  'no-wait',
  'partial',
  'on-behalf-of',
  'output',
  'namespace',
  'all-namespaces',
  'n',
  'c',
  'help',
  'constructor',
];

const isRefused = (error: unknown): boolean => error instanceof Refusal && error.status === 400;

describe('the commands that the console runs', () => {
  for (const [call, line] of lines) {
    it(`make the line: ${line}`, () => {
      assert.equal(lineOf(call), line);
      const { command } = readCommandLine(commandLine(call, where), commands);
      assert.equal(command.name, call.command);
    });
  }

  for (const [what, call] of refusedCalls) {
    it(`do not include ${what}`, () => assert.throws(() => readRunCall(body(call)), isRefused));
  }

  it('never get a flag that reads a file, waits, opens a program, or changes the user', () => {
    for (const command of new Set(lines.map(([call]) => call.command)))
      for (const flag of neverPassed)
        for (const value of ['x', true] as const)
          assert.throws(() => lineOf({ command, flags: { [flag]: value } }), isRefused, `${command} --${flag}`);
  });

  it('get flags of their own, with or without a value', () => {
    for (const flags of [{ max: '5m' }, { emergency: 'true' }, { for: true }, { for: 7 }])
      assert.throws(() => lineOf({ command: 'explain', args: ['shell'], flags } as unknown as RunCall), isRefused);
  });

  it('read no files but those of the journal', () => {
    for (const command of ['who', 'audit report', 'audit verify'] as const)
      assert.throws(() => lineOf({ command, args: ['/etc/passwd'] }), isRefused);
    const empty = { ...where, journal: { ...where.journal, paths: [] } };
    assert.throws(() => commandLine({ command: 'audit report' }, empty), /no journal yet/);
    assert.deepEqual(commandLine({ command: 'who' }, empty), ['who', '-A']);
  });
});

describe('a run of the console', () => {
  let cluster: ScriptedCluster;
  let connection: ClusterConnection;
  const open = async (fault?: Fault, flags: readonly string[] = []): Promise<void> => {
    const objects = {
      podaccessrequests: [request('a', {}, { reason: '\u001b[31mred\u202e' })],
      podaccesstemplates: [template({})],
      accesssessions: [],
    };
    cluster = await ScriptedCluster.open(objects, fault);
    const argv = ['templates', `--kubeconfig=${cluster.kubeconfig}`, ...flags];
    const { args } = readCommandLine(argv, commands);
    const note = (): void => undefined;
    const options = { args, clock: systemClock, kubeconfigPaths: undefined, program: 'kubectl drawbridge', note };
    connection = await openConnection(options);
  };
  afterEach(async () => {
    await connection.cluster.close();
    await cluster.close();
  });
  const run = (call: RunCall, options: Partial<RunOptions> = {}, signal = new AbortController().signal) => {
    const journal = { paths: [], namespace: 'drawbridge-system', heads: [] };
    return runCommand(call, { connection, clock: systemClock, flags: [], journal, ...options }, signal);
  };

  it('has the JSON of the command, and the same command for a terminal', async () => {
    await open();
    const { exitCode, output, messages, line } = await run({ command: 'templates', namespace: 'web' });
    assert.deepEqual([exitCode, messages], [0, []]);
    assert.equal((output as { items: object[] }).items.length, 1);
    assert.equal(line, `kubectl drawbridge templates -n web --kubeconfig=${cluster.kubeconfig}`);
  });

  it('has the text of a command without JSON, and what it says', async () => {
    await open();
    const args = ['0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10'];
    const { exitCode, output, messages } = await run({ command: 'sessions kill', args });
    assert.deepEqual([exitCode, output], [0, '']);
    assert.match(messages.join('\n'), /^session \S+ is not open in namespace payments/);
  });

  it('says what failed without the name of the program', async () => {
    await open();
    for (const call of [
      { command: 'approve', args: ['pod/absent'] },
      { command: 'explain', args: ['absent'] },
      { command: 'explain' },
    ] as const) {
      const { exitCode, messages } = await run(call);
      assert.notEqual(exitCode, 0);
      assert.match(messages[0] ?? '', /^(no request|no template|TEMPLATE is missing)/);
    }
  });

  it('does not wait', async () => {
    await open();
    for (const call of [
      { command: 'request pod', args: ['shell'] },
      { command: 'extend', args: ['a'], flags: { by: '5m' } },
      { command: 'claim', args: ['a'] },
    ] as const)
      assert.equal((await run(call)).exitCode, 0, call.command);
    assert.deepEqual(cluster.server.watches, []);
  });

  it('uses the credentials and flags of the console, and closes its connection', async () => {
    await open(undefined, ['--as=bob']);
    await connection.whoAmI();
    let asked = 0;
    const credentials = {
      ...connection.credentials,
      connectionAuth: () => {
        asked += 1;
        return connection.credentials.connectionAuth();
      },
    };
    await run({ command: 'templates' }, { connection: { ...connection, credentials } });
    assert.ok(asked > 0);
    for (const { headers } of cluster.server.requests) {
      assert.equal(headers['impersonate-user'], 'bob');
      assert.equal(headers['authorization'], 'Bearer secret');
    }
    await until(() => cluster.server.openConnections === 1);
  });

  it('has warnings of its own call only', async () => {
    await open(({ method, path }, answer) => {
      if (method !== 'POST' || path.includes('selfsubject')) return false;
      const metadata = { name: 'made', namespace: 'payments' };
      answer.json(201, { apiVersion: 'v1', kind: 'PodAccessRequest', metadata }, { warning: '299 - "shortened"' });
      return true;
    });
    for (let i = 0; i < 2; i++) {
      const { messages } = await run({ command: 'request pod', args: ['shell'] });
      assert.deepEqual(messages.slice(0, 2), ['note: shortened', 'created podaccessrequest.v1/made']);
    }
  });

  it('ends when the page leaves', async () => {
    const asked = Promise.withResolvers<void>();
    await open(() => {
      asked.resolve();
      return true;
    });
    const [leave, clock] = [new AbortController(), new SimulatedClock()];
    const running = run({ command: 'explain', args: ['shell'] }, { clock }, leave.signal);
    await asked.promise;
    leave.abort();
    // For what the API server does at that time.
    await advanceIo(clock, 6000);
    assert.equal((await running).exitCode, 130);
  });

  it('has at most 16 MiB', async () => {
    const big = request('big', {}, { reason: 'x'.repeat(17 * 1024 * 1024) });
    await open((_, answer) => {
      answer.list('7', [big]);
      return true;
    });
    const { exitCode, messages, output } = await run({ command: 'templates' });
    assert.deepEqual([exitCode, output], [1, '']);
    assert.match(messages.join(), /larger than 16 MiB/);
  });
});

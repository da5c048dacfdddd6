import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readCommandLine } from '../../../../src/client/args.ts';
import { openConnection } from '../../../../src/client/cluster-connection.ts';
import type { Context, Io } from '../../../../src/client/command.ts';
import { openConsole } from '../../../../src/client/commands/console.ts';
import { paths, type Start, tokenHeader } from '../../../../src/client/console/wire.ts';
import { advanceIo, until } from '../../../support/io.ts';
import { type Fault, ScriptedCluster } from '../../../support/scripted-cluster.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

describe('drawbridge console', () => {
  let cluster: ScriptedCluster;
  let stop: AbortController;
  let clock: SimulatedClock;
  let stdout: string;
  let stderr: string;
  const open = async (fault?: Fault): Promise<void> => {
    cluster = await ScriptedCluster.open({}, fault);
  };
  beforeEach(() => {
    [stop, clock, stdout, stderr] = [new AbortController(), new SimulatedClock(), '', ''];
  });
  afterEach(() => cluster.close());

  /** Resolves to the exit code. */
  const start = (...flags: readonly string[]): Promise<number> => {
    const { args } = readCommandLine(['console', '--port', '0', ...flags], [openConsole]);
    const io: Partial<Io> = {
      program: 'drawbridge',
      kubeconfigPaths: cluster.kubeconfig,
      print: (text) => {
        stdout += text;
      },
      printError: (text) => {
        stderr += text;
      },
    };
    const options = { args, clock, kubeconfigPaths: cluster.kubeconfig, program: 'drawbridge', note: () => undefined };
    const connect = () => openConnection(options);
    return openConsole.run({ args, io, clock, signal: stop.signal, connect } as Context);
  };
  const url = async (): Promise<URL> => {
    await until(() => stdout.endsWith('\n'));
    return new URL(/http:\S+/.exec(stdout)?.[0] ?? '');
  };
  const call = async (path: string, { origin, hash }: URL): Promise<Start> =>
    (await (await fetch(origin + path, { headers: { [tokenHeader]: hash.slice(1) } })).json()) as Start;

  it('says where it is, for whom, and how it ends, and ends with 0 at Ctrl-C', async () => {
    await open();
    const running = start('--no-open');
    await url();
    assert.match(
      stdout,
      /^console: http:\/\/127\.0\.0\.1:\d+\/#[\w-]{43} for you alone, until Ctrl-C, or until you have not used it for 30 minutes\n$/,
    );
    stop.abort();
    assert.deepEqual([await running, stderr], [0, '']);
    await assert.rejects(fetch((await url()).origin));
  });

  const allowed =
    (answer: boolean): Fault =>
    ({ path }, { json }) => {
      if (!path.endsWith('selfsubjectaccessreviews')) return false;
      json(201, { status: { allowed: answer } });
      return true;
    };
  const scopes: readonly (readonly [
    what: string,
    mayListAll: boolean,
    flags: string[],
    namespace: string | undefined,
  ])[] = [
    ['all namespaces for those who may list them', true, [], undefined],
    ['the namespace of the context for others', false, [], 'payments'],
    ['the namespace of -n', true, ['-n', 'web'], 'web'],
    ['all namespaces with -A', false, ['-A'], undefined],
  ];
  for (const [what, mayListAll, flags, namespace] of scopes) {
    it(`begins with ${what}`, async () => {
      await open(allowed(mayListAll));
      const running = start('--no-open', ...flags);
      const found = await call(paths.start, await url());
      assert.deepEqual([found.user, found.namespace, found.mayListAll], ['alice', namespace, mayListAll]);
      stop.abort();
      await running;
    });
  }

  it('opens a browser through a file for its user alone, which goes at the first call', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'drawbridge-test-'));
    const before = process.env['PATH'];
    try {
      const seen = join(folder, 'seen');
      for (const name of ['xdg-open', 'open'])
        writeFileSync(join(folder, name), `#!/bin/sh\necho "$@" > ${seen}.new && mv ${seen}.new ${seen}\n`, {
          mode: 0o755,
        });
      process.env['PATH'] = `${folder}:${before}`;
      await open();
      const running = start();
      await until(() => existsSync(seen));
      const file = readFileSync(seen, 'utf8').trim();
      assert.equal(statSync(file).mode & 0o777, 0o600);
      assert.equal(statSync(dirname(file)).mode & 0o777, 0o700);
      const [, target = ''] =
        /<meta http-equiv="refresh" content="0;url=(\S+)">/.exec(readFileSync(file, 'utf8')) ?? [];
      const { origin, hash } = new URL(target);
      assert.equal((await url()).origin, origin);
      assert.ok(!stdout.includes(hash.slice(1)) && !file.includes(hash.slice(1)));
      assert.ok(existsSync(file));
      await call(paths.start, new URL(target));
      await until(() => !existsSync(dirname(file)));
      stop.abort();
      assert.equal(await running, 0);
    } finally {
      process.env['PATH'] = before;
      rmSync(folder, { recursive: true });
    }
  });

  it('names the file if no browser opens, and removes it at the end', async () => {
    const before = process.env['PATH'];
    try {
      process.env['PATH'] = '/nowhere';
      await open();
      const running = start();
      await until(() => stderr !== '');
      const [, file = ''] =
        /^cannot open a browser \(spawn \S+ ENOENT\); open this file in yours: (\S+)\n$/.exec(stderr) ?? [];
      assert.ok(existsSync(file));
      stop.abort();
      await running;
      assert.ok(!existsSync(dirname(file)));
    } finally {
      process.env['PATH'] = before;
    }
  });

  it('ends by itself after 30 minutes without use, and says so', async () => {
    await open();
    const running = start('--no-open');
    const at = await url();
    await advanceIo(clock, 29 * 60_000, 10_000);
    const awake = { method: 'POST', headers: { [tokenHeader]: at.hash.slice(1) } };
    assert.equal((await fetch(at.origin + paths.awake, awake)).status, 200);
    await advanceIo(clock, 29 * 60_000, 10_000);
    assert.equal(stderr, '');
    await advanceIo(clock, 2 * 60_000, 10_000);
    assert.deepEqual([await running, stderr], [0, 'the console ends, because it was not used for 30 minutes\n']);
  });

  it('says what to do if the port is in use', async () => {
    await open();
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await assert.rejects(start('--port', String(port)), (error: Error) => {
      assert.match(error.message, new RegExp(`cannot listen on port ${port} .*EADDRINUSE.*omit --port`));
      return true;
    });
    other.close();
  });

  for (const port of ['x', '-1', '65536', '1.5', '']) {
    it(`takes no port ${port || "''"}`, async () => {
      await open();
      await assert.rejects(start(`--port=${port}`), /it must be a number from 0 to 65535/);
      assert.deepEqual(cluster.server.requests, []);
    });
  }

  it('fails at once without a cluster', async () => {
    await open((_, answer) => {
      answer.status(401, 'Unauthorized');
      return true;
    });
    await assert.rejects(start(), /401/);
    assert.equal(stdout, '');
  });
});

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { ensureBinaries } from '../../../sandbox/build/binaries.ts';
import { run } from '../../../sandbox/build/run.ts';
import { until } from '../../../sandbox/wait.ts';
import { scriptOf } from '../../support/page-commands.ts';
import { shown } from '../../support/shown-output.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const limitMs = 240_000;

const logRow = /^ +log +\S+\n/m;
const execNote = /`kubectl exec` runs its command on this machine, as \w+\./;

/** A program of the sandbox that keeps running, and what it has printed. */
class Demo {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = '';

  constructor(program: string, env: Record<string, string>) {
    const args = ['--import', 'tsx', `sandbox/${program}.ts`];
    this.#child = spawn(process.execPath, args, { cwd: root, env: { ...process.env, ...env }, stdio: 'pipe' });
    this.#exited = once(this.#child, 'exit');
    const collect = (chunk: Buffer): void => {
      this.#output += chunk.toString();
    };
    this.#child.stdout?.on('data', collect);
    this.#child.stderr?.on('data', collect);
  }

  /** Resolves to the part of the output that tells how to try it, once it has the `last` line. */
  async whenItKeepsRunning(last = logRow): Promise<string> {
    await until(
      'the demo to keep running',
      () => {
        assert.equal(this.#child.exitCode, null, this.#output);
        return last.test(this.#output);
      },
      { timeoutMs: limitMs },
    );
    return this.#output.slice(this.#output.indexOf('another terminal'));
  }

  get output(): string {
    return this.#output;
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGINT');
    await this.#exited;
  }
}

/** The value of a row that the demo prints. */
const row = (text: string, name: string): string => new RegExp(`^ *${name} +(\\S+)$`, 'm').exec(text)?.[1] ?? '';

async function assertAddressesAnswer(text: string): Promise<void> {
  const health = await fetch(row(text, 'health'));
  assert.equal(health.status, 200);
  assert.ok(/^controller_runtime_reconcile_total\{/m.test(await (await fetch(row(text, 'metrics'))).text()));
  const path = /PATH=(\S+):\$PATH/.exec(text)?.[1] ?? '';
  const kubeconfig = row(text, 'kubeconfig of the administrator');
  const answer = await run(`${path}/kubectl`, ['--kubeconfig', kubeconfig, 'auth', 'can-i', '*', '*']);
  assert.equal(answer.stdout, 'yes\n', answer.stderr);
}

/** Asserts that the first commands of a demo are those with which a page below docs/ begins: a Secret, and an object that names it. */
function assertBeginsAs(page: string, output: string): void {
  const secret = scriptOf(`docs/${page}`, 'kubectl create secret').trim();
  const [, manifest = ''] = /<<'YAML'\n(.*?)YAML$/ms.exec(scriptOf(`docs/${page}`, 'kubectl apply -f -')) ?? [];
  const [first, second] = [...output.matchAll(/^ +\$ (kubectl .*)$/gm)].map(([, command]) => command);
  assert.deepEqual([first, second], [secret, 'kubectl apply -f bundle.yaml']);
  const printed = stringify(parse(manifest)).replace(/^(?=.)/gm, ' '.repeat(5));
  assert.ok(output.includes(`$ kubectl apply -f bundle.yaml\n${printed}`), output);
}

/** Follows docs/inventory/write-a-component.md with the lines that the demo prints. */
async function runComponent(text: string): Promise<void> {
  const page = 'docs/inventory/write-a-component.md';
  const lines = text.split('\n').filter((line) => /^ +(cd|export) /.test(line));
  const bash = async (script: string): Promise<string> => {
    const { code, stdout, stderr } = await run('bash', ['-euc', [...lines, script].join('\n')]);
    assert.equal(code, 0, `${script}\n${stdout}${stderr}`);
    return stdout;
  };
  const prints = async (words: string, expected: RegExp, port = ''): Promise<void> =>
    assert.match(await bash(scriptOf(page, words).replace('PORT', port)), expected);

  assert.ok((await fetch(row(text, 'callbacks of components'))).status >= 400);
  await bash(scriptOf(page, 'kubectl create serviceaccount'));
  const start = [...lines, scriptOf(page, 'python3')].join('\n');
  // In a group of its own, which ends with Python.
  const component = spawn('bash', ['-euc', start], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  try {
    const [port] = (await once(createInterface(component.stdout), 'line')) as [string];
    await prints('ComponentReconciler', shown('inventory/write-a-component.md', 'componentreconciler'), port);
    await prints('ClusterInventory', shown('inventory/write-a-component.md', 'try-dns created'));
    await prints('kubectl wait', shown('inventory/write-a-component.md', 'condition met'));
    await prints('status.outputs', shown('inventory/write-a-component.md', 'hello'));
    await bash(scriptOf(page, 'kubectl patch'));
    const events = scriptOf(page, 'kubectl events');
    await until('the answer', async () => (await bash(events)).includes('NotReady'), { timeoutMs: 30_000 });
    await prints('kubectl events', shown('inventory/write-a-component.md', 'LAST SEEN'));
    await prints('kubectl get reconcilerun', shown('inventory/write-a-component.md', 'SEQ'));
    await prints('inventory why', shown('inventory/write-a-component.md', 'or earlier'));
  } finally {
    if (component.pid) process.kill(-component.pid);
  }
}

describe('make run', function () {
  this.timeout(limitMs + 60_000);

  const demos: readonly {
    readonly program: string;
    readonly last?: RegExp;
    /** Follows a page with what the demo prints. */
    readonly follow?: (text: string) => Promise<void>;
    readonly lasts?: string;
    /** The page below docs/ that begins in the same way. */
    readonly page?: string;
  }[] = [
    { program: 'run', last: execNote },
    { program: 'run-binding', page: 'binding/bind-a-provider.md' },
    { program: 'run-inventory', follow: runComponent },
    // Too short for a warning two minutes before the end, and long enough for a busy machine.
    { program: 'run-session', lasts: '40s' },
    { program: 'run-console', last: execNote },
  ];
  for (const { program, last, follow, lasts = '20s', page } of demos) {
    it(`of sandbox/${program}.ts tells its story, prints addresses that answer, and removes everything at its end`, async () => {
      const demo = new Demo(program, { DURATION: lasts, ONCE: '' });
      let kubeconfig: string;
      try {
        const text = await demo.whenItKeepsRunning(last);
        await assertAddressesAnswer(text);
        kubeconfig = row(text, 'kubeconfig of the administrator');
        if (page) assertBeginsAs(page, demo.output);
        await follow?.(text);
      } finally {
        await demo.stop();
      }
      await until('the folder to be removed', () => !existsSync(kubeconfig), { timeoutMs: 30_000 });
    });
  }
});

describe('make sandbox WITH=drawbridge', function () {
  this.timeout(limitMs + 60_000);

  it('prints commands with which alice gets a shell, has templates without exec, and lets the administrator bind approvers', async () => {
    const demo = new Demo('main', { WITH: 'drawbridge' });
    try {
      const text = await demo.whenItKeepsRunning();
      await assertAddressesAnswer(text);
      const commands = text.split('\n').filter((line) => /^ +(cd|export|drawbridge\b)/.test(line));
      const asAlice = commands.slice(0, commands.findIndex((line) => line.includes('--exec')) + 1);
      const script = asAlice.join('\n').replace(/--exec$/, '--exec -- echo in the pod of alice');
      const { stdout, stderr, code } = await run('bash', ['-euc', script]);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /in the pod of alice\n$/);
      const logs = script.replace(/^ *drawbridge request .*$/m, 'drawbridge request exec payments-logs -n payments');
      const withoutExec = await run('bash', ['-euc', logs]);
      assert.equal(withoutExec.code, 0, withoutExec.stderr);
      assert.match(withoutExec.stdout, /^kubectl logs -f -n payments payments-\S+\n$/m);
      const admin = `${commands.slice(0, 3).join('\n')}\nexport KUBECONFIG=${row(text, 'kubeconfig of the administrator')}\n`;
      const healthy = await run('bash', ['-euc', `${admin}drawbridge doctor`]);
      assert.equal(healthy.code, 0, healthy.stdout);
      const ask = 'drawbridge approvers payments-production -n payments 2>&1';
      const unbound = await run('bash', [
        '-euc',
        `${admin}kubectl delete rolebinding carol-approves -n payments\n${ask}`,
      ]);
      const [, bind = ''] = /^no binding gives .*: (kubectl create rolebinding .*)$/m.exec(unbound.stdout) ?? [];
      const bound = await run('bash', ['-euc', `${admin}${bind}\n${ask}`]);
      assert.equal(bound.code, 0, `${unbound.stdout}${bound.stderr}`);
      assert.match(bound.stdout, /^Group +secops +security +RoleBinding payments-production-approvers$/m);
      assert.doesNotMatch(bound.stdout, /no binding gives|not checked/);
    } finally {
      await demo.stop();
    }
  });

  describe('without the programs in its cache', () => {
    /** Programs of this machine, as a folder of envtest. */
    let assets: string;
    let cache: string;
    const env = () => ({
      ...{ XDG_CACHE_HOME: cache, KUBEBUILDER_ASSETS: assets },
      ...{ DRAWBRIDGE_PROGRAMS: '', TEST_ASSET_ETCD: '', TEST_ASSET_KUBE_APISERVER: '' },
    });

    before(async () => {
      assets = await mkdtemp(join(tmpdir(), 'assets-'));
      cache = await mkdtemp(join(tmpdir(), 'cache-'));
      const binaries = Object.entries(await ensureBinaries());
      await Promise.all(binaries.map(([name, path]) => symlink(path, join(assets, name))));
    });
    after(() => Promise.all([assets, cache].map((folder) => rm(folder, { recursive: true, force: true }))));

    it('runs those of KUBEBUILDER_ASSETS, and builds none', async () => {
      const demo = new Demo('main', env());
      try {
        const text = await demo.whenItKeepsRunning(/Ctrl-C ends it/);
        assert.doesNotMatch(demo.output, /building/);
        assert.ok(text.includes(`export PATH=${assets}:$PATH`), text);
        const [, kubeconfig = ''] = /export KUBECONFIG=(\S+)/.exec(text) ?? [];
        const { stdout } = await run(join(assets, 'kubectl'), ['version', '--kubeconfig', kubeconfig]);
        assert.match(stdout, /^Server Version: v1\.36\./m);
      } finally {
        await demo.stop();
      }
    });

    it('says at once which it builds, for how long, which does not fit, and how to skip the build', async () => {
      const old = join(assets, 'kube-apiserver');
      await rm(old);
      await writeFile(old, "#!/bin/sh\necho 'Kubernetes v1.31.0'\n");
      await chmod(old, 0o755);
      // In a group of its own, which ends with the compiler.
      const child = spawn(process.execPath, ['--import', 'tsx', 'sandbox/main.ts'], {
        cwd: root,
        env: { ...process.env, ...env() },
        detached: true,
      });
      const exited = once(child, 'exit');
      let output = '';
      child.stderr.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
      try {
        await until('the announcement', () => output.includes('to skip this\n'), { timeoutMs: 60_000 });
      } finally {
        if (child.pid) process.kill(-child.pid, 'SIGKILL');
        await exited;
      }
      assert.deepEqual(output.split('\n').slice(0, 3), [
        `${old} of KUBEBUILDER_ASSETS is v1.31.0; allowed: v1.36.x`,
        `building kube-apiserver from source into ${cache}/drawbridge/sandbox, once: all take about eight minutes on two cores`,
        'set DRAWBRIDGE_PROGRAMS or KUBEBUILDER_ASSETS to a folder that has them for Kubernetes 1.36 to skip this',
      ]);
    });
  });

  it('names what WITH allows', async () => {
    const env = { ...process.env, WITH: 'oz' };
    const { code, stderr } = await run(process.execPath, ['--import', 'tsx', 'sandbox/main.ts'], { cwd: root, env });
    assert.deepEqual(
      [code, stderr],
      [2, 'WITH is "oz"; allowed: drawbridge, or nothing for the control plane alone\n'],
    );
  });
});

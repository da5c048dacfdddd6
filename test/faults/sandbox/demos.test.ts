import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { run } from '../../../sandbox/build/run.ts';
import { until } from '../../../sandbox/wait.ts';

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

describe('make run', function () {
  this.timeout(limitMs + 60_000);

  const demos: readonly {
    readonly program: string;
    readonly last?: RegExp;
    readonly callbacks?: true;
    readonly lasts?: string;
  }[] = [
    { program: 'run', last: execNote },
    { program: 'run-binding' },
    { program: 'run-inventory', callbacks: true },
    // Too short for a warning two minutes before the end, and long enough for a busy machine.
    { program: 'run-session', lasts: '40s' },
  ];
  for (const { program, last, callbacks, lasts = '20s' } of demos) {
    it(`of sandbox/${program}.ts tells its story, prints addresses that answer, and removes everything at its end`, async () => {
      const demo = new Demo(program, { DURATION: lasts, ONCE: '' });
      let kubeconfig: string;
      try {
        const text = await demo.whenItKeepsRunning(last);
        await assertAddressesAnswer(text);
        kubeconfig = row(text, 'kubeconfig of the administrator');
        if (callbacks) assert.ok((await fetch(row(text, 'callbacks of components'))).status >= 400);
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

  it('names what WITH allows', async () => {
    const env = { ...process.env, WITH: 'oz' };
    const { code, stderr } = await run(process.execPath, ['--import', 'tsx', 'sandbox/main.ts'], { cwd: root, env });
    assert.deepEqual(
      [code, stderr],
      [2, 'WITH is "oz"; allowed: drawbridge, or nothing for the control plane alone\n'],
    );
  });
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type RunResult, run } from '../build/run.ts';
import { until } from '../wait.ts';
import type { Watchdog } from '../watchdog.ts';

/** Which namespaces a program enters. `network` alone keeps its process id on this machine. */
export type Entry = 'network' | 'all';

// The first process also collects those whose parents have ended, such as shims of containers.
const firstProcess = `
set -e
mount --make-rshared /
mount -t tmpfs -o mode=0755 tmpfs /run
mount -t tmpfs -o mode=0755 tmpfs /var/lib
mkdir /var/lib/kubelet /var/lib/containerd
mount --bind "$1/kubelet" /var/lib/kubelet
mount --bind "$1/containerd" /var/lib/containerd
mount --bind "$1/var-log" /var/log
mount --bind "$1/resolv.conf" /etc/resolv.conf
ip link set lo up
echo ready
sleep infinity &
wait
`;

/**
 * Network, mount, and process namespaces of their own. The kernel ends every process in them with the first one, and then removes
 * their mounts and network interfaces, so containers need no cleaning up.
 */
export class Namespaces {
  /** The first process in them, as this machine counts. */
  readonly pid: number;
  readonly #parent: ChildProcess | undefined;

  private constructor(pid: number, parent?: ChildProcess) {
    this.pid = pid;
    this.#parent = parent;
  }

  /** `directory` has the folders `kubelet`, `containerd`, and `var-log`, and a `resolv.conf`, which replace those of the machine. */
  static async open(directory: string, watchdog: Watchdog): Promise<Namespaces> {
    const flags = ['--net', '--mount', '--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc'];
    const parent = spawn('unshare', [...flags, 'sh', '-c', firstProcess, 'node', directory], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [parent.stdout, parent.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk;
      });
    await until(
      'the namespaces of the node',
      () => {
        if (parent.exitCode !== null) throw new Error(`the node has no namespaces: ${output}`);
        return output.includes('ready');
      },
      { timeoutMs: 10_000, everyMs: 5 },
    );
    const pid = parent.pid ?? 0;
    watchdog.watch(pid);
    parent.once('exit', () => watchdog.forget(pid));
    // A finished test run must not wait for its node.
    parent.unref();
    for (const stream of [parent.stdout, parent.stderr]) stream.destroy();
    return new Namespaces(Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()), parent);
  }

  /** Those that another process opened. */
  static of(pid: number): Namespaces {
    return new Namespaces(pid);
  }

  /** The words that run a program in them, for `spawn`. */
  words(entry: Entry, program: string, args: readonly string[]): [string, ...string[]] {
    const which = entry === 'all' ? ['--net', '--mount', '--pid'] : ['--net'];
    return ['nsenter', `--target=${this.pid}`, ...which, '--', program, ...args];
  }

  /** Rejects if the program fails. */
  async run(program: string, args: readonly string[], input = ''): Promise<RunResult> {
    const [command, ...words] = this.words('all', program, args);
    const result = await run(command, words, { input });
    if (result.code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${result.code}:\n${result.stderr}`);
    return result;
  }

  /** Ends every process in them. */
  async close(): Promise<void> {
    const parent = this.#parent;
    if (parent === undefined || parent.exitCode !== null || parent.signalCode !== null) return;
    parent.ref();
    const exit = once(parent, 'exit');
    parent.kill('SIGKILL');
    await exit;
  }
}

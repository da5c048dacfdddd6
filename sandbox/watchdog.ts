import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

// Reads orders from its standard input. When that ends without `done`, our process is gone, however it went:
// then what it started is killed and its folder removed. `sh` alone, so that it runs anywhere and costs nothing.
const script = `
trap '' INT TERM HUP
pids=' '
while read -r order argument; do
  case $order in
    watch) pids="$pids$argument " ;;
    forget) pids="\${pids%% $argument *} \${pids#* $argument }" ;;
    done) exit 0 ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
case $1 in /?*) rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; } ;; esac
`;

/** Ends our children when this process ends without having ended them itself, SIGKILL included. */
export class Watchdog {
  readonly #child: ChildProcess;

  /** `folder` (absolute) is removed together with the children. */
  constructor(folder: string) {
    // In a session of its own, so that Ctrl-C in a terminal does not reach it.
    this.#child = spawn('sh', ['-c', script, 'watchdog', folder], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#child.unref();
    this.#child.stdin?.on('error', () => undefined);
    unref(this.#child.stdin);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  watch(pid: number): void {
    this.#child.stdin?.write(`watch ${pid}\n`);
  }

  /** To be called once `pid` has ended, since its number may go to another process. */
  forget(pid: number): void {
    this.#child.stdin?.write(`forget ${pid}\n`);
  }

  /** Dismisses the watchdog without it touching anything; resolves once it is gone. */
  async done(): Promise<void> {
    this.#child.ref();
    const exit = once(this.#child, 'exit');
    this.#child.stdin?.end('done\n');
    await exit;
  }

  /** Leaves it as the end of this process would: it kills and removes. */
  abandon(): void {
    this.#child.stdin?.end();
  }
}

function unref(stream: unknown): void {
  (stream as { unref?: () => void } | null)?.unref?.();
}

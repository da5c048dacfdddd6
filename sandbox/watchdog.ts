import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { containersFolder } from './layout.ts';

// Reads orders from standard input. If the input ends without `done`, the parent process has died. The script then kills the parent's
// children and removes their folders. In both cases it kills the processes of containers, which outlive the kubelet; their HOME names
// their folder (sandbox/kubelet), and removes the control groups, whose processes may take a moment to end. It needs only `sh`, `grep`, and
// for control groups `find`, so that it runs anywhere.
const script = `
trap '' INT TERM HUP
ended=
pids=' '
while read -r order argument; do
  case $order in
    watch) pids="$pids$argument " ;;
    forget) pids="\${pids%% $argument *} \${pids#* $argument }" ;;
    done) ended=1; break ;;
  esac
done
[ "$ended" ] || for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
for file in $(grep -lsF "HOME=$2/" /proc/[0-9]*/environ); do
  pid=\${file#/proc/}
  kill -KILL "\${pid%/environ}" 2>/dev/null
done
folder=$1 containers=$2
shift 2
for group; do
  tries=100
  while [ -d "$group" ] && [ $((tries -= 1)) -gt 0 ]; do
    find "$group" -depth -type d -exec rmdir {} ';' 2>/dev/null
    [ -d "$group" ] && sleep 0.1
  done
done
[ "$ended" ] && exit
case $folder in /?*) rm -rf "$folder" "$containers" 2>/dev/null || { sleep 1; rm -rf "$folder" "$containers"; } ;; esac
`;

/** Kills the children of this process if it dies without ending them, even by SIGKILL. */
export class Watchdog {
  readonly #child: ChildProcess;

  /** Also removes `folder`, the folder of its containers, and control groups: absolute paths. */
  constructor(folder: string, controlGroups: readonly string[] = []) {
    // It has its own session, so that Ctrl-C in a terminal does not reach it.
    this.#child = spawn('sh', ['-c', script, 'watchdog', folder, containersFolder(folder), ...controlGroups], {
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

  /** Call it once `pid` has ended, because another process may get the same id. */
  forget(pid: number): void {
    this.#child.stdin?.write(`forget ${pid}\n`);
  }

  /** Ends the watchdog, which kills only the processes of containers, and removes the control groups. Resolves once it has ended. */
  async done(): Promise<void> {
    this.#child.ref();
    const exit = once(this.#child, 'exit');
    this.#child.stdin?.end('done\n');
    await exit;
  }

  /** Triggers the watchdog as the death of this process would: it kills the children and removes the folder. */
  abandon(): void {
    this.#child.stdin?.end();
  }
}

function unref(stream: unknown): void {
  (stream as { unref?: () => void } | null)?.unref?.();
}

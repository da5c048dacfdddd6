import { spawn } from 'node:child_process';

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The exit code; 128 if a signal ended the program. */
  readonly code: number;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Written to the program's standard input, which is then closed. */
  readonly input?: string;
}

/** Runs a program to its end and collects its output. Rejects only if the program cannot be started. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, env: options.env ?? process.env, stdio: 'pipe' });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ stdout, stderr, code: code ?? 128 }));
    // A program may end without reading its input.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

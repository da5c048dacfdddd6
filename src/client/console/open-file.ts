import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Leads a browser to a URL that has the token, which no argument of a process may have. */
export interface OpenFile {
  readonly path: string;
  /** Idempotent. */
  remove(): Promise<void>;
}

/** Only this user can read it. `url`: without characters of HTML. */
export async function writeOpenFile(url: string): Promise<OpenFile> {
  // The folder has mode 0700.
  const folder = await mkdtemp(join(tmpdir(), 'drawbridge-console-'));
  const path = join(folder, 'open.html');
  await writeFile(
    path,
    `<!doctype html><meta http-equiv="refresh" content="0;url=${url}"><title>drawbridge</title>\n`,
    {
      mode: 0o600,
    },
  );
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** The program of this system that opens a file. */
export const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';

/** Rejects if the program cannot start or fails. It may run as long as the browser. */
export function startOpener(program: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // In a group of its own, because Ctrl-C would end the browser, too.
    const started = spawn(program, [path], { detached: true, stdio: 'ignore' });
    started.once('error', reject);
    started.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program} exited with ${code}`))));
    started.unref();
  });
}

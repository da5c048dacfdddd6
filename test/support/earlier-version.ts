import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const git = ['-C', root, '-c', `safe.directory=${root}`];

/** The chart and the program of an earlier commit. */
export class EarlierVersion {
  readonly chart: string;
  readonly program: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.chart = join(folder, 'charts/drawbridge');
    this.program = join(folder, 'dist/drawbridge.js');
  }

  /** Whether this clone has the commit; a clone without history does not. */
  static isKnown(commit: string): boolean {
    return spawnSync('git', [...git, 'cat-file', '-e', commit]).status === 0;
  }

  /** Checks it out from history and builds it with the current packages. */
  static async build(commit: string): Promise<EarlierVersion> {
    const folder = await mkdtemp(join(tmpdir(), 'drawbridge-earlier-'));
    const archive = join(folder, 'archive.tar');
    const paths = ['charts', 'release', 'src', 'package.json', 'tsconfig.json'];
    await run('git', [...git, 'archive', '--format=tar', `--output=${archive}`, commit, ...paths]);
    await run('tar', ['-x', '-f', archive, '-C', folder]);
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    await run('npm', ['run', '--silent', 'build'], { cwd: folder });
    return new EarlierVersion(folder);
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true });
  }
}

import { chmod, copyFile, cp, mkdir, mkdtemp, realpath, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { run } from '../../build/run.ts';

const libraries = /\/lib\S*/g;

/** The files of an image, made of files of this machine. Begins with busybox under all its names, and a root user. */
export class RootFiles {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(workspace: string): Promise<RootFiles> {
    const files = new RootFiles(await mkdtemp(join(workspace, 'files-')));
    await chmod(files.folder, 0o755);
    for (const folder of ['bin', 'etc', 'root', 'tmp', 'usr/bin']) await mkdir(files.#at(folder), { recursive: true });
    await chmod(files.#at('tmp'), 0o1777);
    await files.copy('/usr/bin/busybox', '/bin/busybox');
    const { stdout } = await run('/usr/bin/busybox', ['--list']);
    for (const name of stdout
      .trim()
      .split('\n')
      .filter((one) => one !== 'busybox'))
      await symlink('busybox', files.#at(`bin/${name}`));
    await files.write('/etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n');
    await files.write('/etc/group', 'root:x:0:\nnobody:x:65534:\n');
    return files;
  }

  /** Copies a file or a folder of this machine, by default to the same path. */
  async copy(path: string, target = path): Promise<void> {
    await mkdir(dirname(this.#at(target)), { recursive: true });
    await cp(await realpath(path), this.#at(target), { recursive: true, verbatimSymlinks: true });
  }

  /** Copies a program and the libraries that it is linked with. */
  async program(path: string, target = path): Promise<void> {
    await this.copy(path, target);
    const { stdout } = await run('ldd', [path]);
    for (const library of stdout.match(libraries) ?? []) {
      await mkdir(dirname(this.#at(library)), { recursive: true });
      await copyFile(library, this.#at(library));
    }
  }

  async write(path: string, content: string, mode = 0o644): Promise<void> {
    await mkdir(dirname(this.#at(path)), { recursive: true });
    await writeFile(this.#at(path), content, { mode });
  }

  async link(path: string, to: string): Promise<void> {
    await mkdir(dirname(this.#at(path)), { recursive: true });
    await symlink(to, this.#at(path));
  }

  #at(path: string): string {
    return join(this.folder, path);
  }
}

/** The folder of a package that provides a program on the PATH, such as npm. */
export async function packageOf(program: string): Promise<string> {
  const { stdout } = await run('sh', ['-c', `readlink -f "$(command -v ${program})"`]);
  const folder = dirname(dirname(stdout.trim()));
  if (basename(folder) !== program) throw new Error(`${program} is at ${stdout.trim()}, not in a package of its name`);
  return folder;
}

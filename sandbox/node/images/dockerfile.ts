import { cp, mkdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../build/run.ts';

export const checkout = fileURLToPath(new URL('../../..', import.meta.url));

/** The files of this checkout that git does not ignore, with those that are not committed yet. */
export async function checkedOutFiles(...paths: readonly string[]): Promise<string[]> {
  const flags = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate', '--', ...paths];
  const all = await run('git', flags, { cwd: checkout });
  const deleted = await run('git', ['ls-files', '-z', '--deleted'], { cwd: checkout });
  if (all.code !== 0 || deleted.code !== 0) throw new Error(`git ls-files failed: ${all.stderr}${deleted.stderr}`);
  const gone = new Set(deleted.stdout.split('\0'));
  return all.stdout.split('\0').filter((file) => file !== '' && !gone.has(file));
}

/** What the build arguments BUILD_IMAGE and RUNTIME_IMAGE name: the archive of an image. */
export interface Build {
  readonly name: string;
  readonly base: string;
  readonly archive: string;
  readonly workspace: string;
}

/** Builds the Dockerfile in a copy of the checkout, as `docker build` would in a fresh clone, with other base images. */
export async function buildDockerfile({ name, base, archive, workspace }: Build): Promise<void> {
  const context = join(workspace, 'context');
  for (const file of await checkedOutFiles()) {
    await mkdir(dirname(join(context, file)), { recursive: true });
    await cp(join(checkout, file), join(context, file), { verbatimSymlinks: true });
  }
  const storage = ['--root', join(workspace, 'root'), '--runroot', join(workspace, 'run'), '--storage-driver', 'vfs'];
  const images = ['BUILD_IMAGE', 'RUNTIME_IMAGE'].flatMap((image) => [
    '--build-arg',
    `${image}=docker-archive:${base}`,
  ]);
  const buildah = async (...args: string[]): Promise<void> => {
    const { code, stdout, stderr } = await run('nice', ['buildah', ...storage, ...args], { cwd: context });
    if (code !== 0)
      throw new Error(`buildah ${args.join(' ')} ended with ${code}:\n${`${stdout}${stderr}`.slice(-4000)}`);
  };
  // An isolation that needs no container runtime.
  await buildah('bud', '--isolation', 'chroot', ...images, '-t', name, '.');
  await buildah('push', name, `docker-archive:${join(workspace, 'image.tar')}:${name}`);
  await rename(join(workspace, 'image.tar'), archive);
}

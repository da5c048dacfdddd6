import { cp, mkdir } from 'node:fs/promises';
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

export interface Build {
  readonly name: string;
  /** The build arguments BUILD_IMAGE and RUNTIME_IMAGE; those of the Dockerfile if absent. */
  readonly bases: Readonly<Record<string, string>>;
  /** In seconds since 1970, of the image and of its files, so that each build gives the same bytes. */
  readonly created: number;
  readonly labels?: Readonly<Record<string, string>>;
  /** Where buildah writes the image, such as `docker-archive:FILE:NAME`. */
  readonly target: string;
  readonly workspace: string;
}

/** Builds the Dockerfile in a copy of the checkout, as `docker build` would in a fresh clone. */
export async function buildDockerfile(build: Build): Promise<void> {
  const { name, workspace } = build;
  const context = join(workspace, 'context');
  for (const file of await checkedOutFiles()) {
    await mkdir(dirname(join(context, file)), { recursive: true });
    await cp(join(checkout, file), join(context, file), { verbatimSymlinks: true });
  }
  const storage = ['--root', join(workspace, 'root'), '--runroot', join(workspace, 'run'), '--storage-driver', 'vfs'];
  const buildah = async (...args: string[]): Promise<void> => {
    const { code, stdout, stderr } = await run('nice', ['buildah', ...storage, ...args], { cwd: context });
    if (code !== 0)
      throw new Error(`buildah ${args.join(' ')} ended with ${code}:\n${`${stdout}${stderr}`.slice(-4000)}`);
  };
  const pairs = (flag: string, values: object = {}): string[] =>
    Object.entries(values).flatMap(([key, value]) => [flag, `${key}=${value}`]);
  const same = ['--timestamp', String(build.created), '--identity-label=false'];
  // An isolation that needs no container runtime.
  const flags = [
    '--isolation',
    'chroot',
    ...same,
    ...pairs('--build-arg', build.bases),
    ...pairs('--label', build.labels),
  ];
  await buildah('bud', ...flags, '-t', name, '.');
  await buildah('push', name, build.target);
}

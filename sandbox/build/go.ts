import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheKey } from './cache-key.ts';
import { type GoProgram, goFlags, goModules, goPrograms, goTargets } from './programs.ts';
import { run } from './run.ts';

/** The output of `go version`. Without a usable Go, throws an error that names what to install. */
export async function goVersion(): Promise<string> {
  // Runs inside a module, because its go.mod may select a newer toolchain.
  const answer = await run('go', ['version'], { cwd: goModules[0] ?? '.' }).catch(() => undefined);
  if (answer === undefined) {
    throw new Error(
      'The sandbox builds etcd and Kubernetes from source and found no `go` on the PATH: install Go 1.26 or newer ' +
        '(https://go.dev/dl), or set DRAWBRIDGE_PROGRAMS to a folder that has every program of the sandbox.',
    );
  }
  if (answer.code !== 0)
    throw new Error(`\`go version\` failed, the sandbox needs Go 1.26 or newer:\n${answer.stderr}`);
  return answer.stdout;
}

/** The cache key of the programs this checkout pins, built with the given Go. */
export async function goCacheKey(version: string): Promise<string> {
  const files = goModules.flatMap((module) => [join(module, 'go.mod'), join(module, 'go.sum')]);
  return cacheKey({
    moduleFiles: await Promise.all(files.map((file) => readFile(file, 'utf8'))),
    flags: [...goFlags, ...goPrograms.map((program) => goTargets[program].ldflags)],
    goVersion: version,
    platform: `${process.platform}/${process.arch}`,
  });
}

/** Builds one program under `workspace` and moves it, finished, to `destination` on the same file system. */
export async function buildGoProgram(program: GoProgram, workspace: string, destination: string): Promise<void> {
  const target = goTargets[program];
  const output = join(workspace, program);
  const built = await run('go', ['build', ...goFlags, '-ldflags', target.ldflags, '-o', output, target.package], {
    cwd: target.module,
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  if (built.code !== 0) throw new Error(`building ${program} failed:\n${built.stderr.slice(-4000)}`);
  await rename(output, destination);
}

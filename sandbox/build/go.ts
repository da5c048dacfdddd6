import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheKey } from './cache-key.ts';
import { writeKubernetesModule } from './kubernetes-module.ts';
import { type GoProgram, goFlags, goTargets } from './programs.ts';
import { run } from './run.ts';

/** The output of `go version`. Without a usable Go, throws an error that names what to install. */
export async function goVersion(): Promise<string> {
  // Runs inside a module, because its go.mod may select a newer toolchain.
  const answer = await run('go', ['version'], { cwd: goTargets.etcd.module }).catch(() => undefined);
  if (answer === undefined) {
    throw new Error(
      'The sandbox builds etcd and Kubernetes from source and found no `go` on the PATH: install Go 1.21 or newer ' +
        '(https://go.dev/dl), or set DRAWBRIDGE_PROGRAMS to a folder that has every program of the sandbox.',
    );
  }
  if (answer.code !== 0)
    throw new Error(`\`go version\` failed, the sandbox needs Go 1.21 or newer:\n${answer.stderr}`);
  return answer.stdout;
}

/** The cache key of all programs of a module, built with the given Go. */
export async function goCacheKey(program: GoProgram, version: string): Promise<string> {
  const target = goTargets[program];
  return cacheKey({
    moduleFiles: target.ofVersion === undefined ? await moduleFiles(target.module) : [target.ofVersion],
    flags: goFlags(target),
    goVersion: version,
    platform: `${process.platform}/${process.arch}`,
  });
}

async function moduleFiles(module: string): Promise<string[]> {
  const files = (await readdir(module)).filter((name) => /\.(go|mod|sum)$/.test(name)).sort();
  return Promise.all(files.map((file) => readFile(join(module, file), 'utf8')));
}

/** Builds one program under `workspace` and moves it, finished, to `destination` on the same file system. */
export async function buildGoProgram(program: GoProgram, workspace: string, destination: string): Promise<void> {
  const target = goTargets[program];
  const output = join(workspace, program);
  const { ofVersion } = target;
  const module = ofVersion === undefined ? target.module : join(workspace, ofVersion);
  if (ofVersion !== undefined) await writeKubernetesModule(module, ofVersion);
  const command = target.isTest ? ['test', '-vet=off', '-c'] : ['build'];
  const built = await run('go', [...command, ...goFlags(target), '-o', output, target.package], {
    cwd: module,
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  if (built.code !== 0) throw new Error(`building ${program} failed:\n${built.stderr.slice(-4000)}`);
  await rename(output, destination);
}

import { join } from 'node:path';
import { kubeletVersion, kubernetesVersion } from '../versions.ts';
import { isExecutable } from './clients.ts';
import { type Binaries, type Program, programs } from './programs.ts';
import type { OnProgress } from './progress.ts';
import { run } from './run.ts';

/** Which versions of a program the sandbox can use instead of its own. */
interface Version {
  /** Arguments that print the version. */
  readonly args: readonly string[];
  /** Captures the version in that output. */
  readonly pattern: RegExp;
  /** The beginnings of the versions that fit: those of the programs that the sandbox builds, up to the minor version. */
  readonly fitting: readonly string[];
}

const minorOf = (version: string): string => version.replace(/\d+$/, '');
const ofKubernetes: Version = {
  args: ['--version'],
  pattern: /^Kubernetes (v\S+)/,
  fitting: [minorOf(kubernetesVersion)],
};
// Keep in step with the versions that the sandbox builds: sandbox/versions.ts and go.mod.
const versions: Readonly<Record<Program, Version>> = {
  etcd: { args: ['--version'], pattern: /^etcd Version: (\S+)/, fitting: ['3.6.'] },
  'kube-apiserver': ofKubernetes,
  'kube-controller-manager': ofKubernetes,
  'kube-scheduler': ofKubernetes,
  kwok: { args: ['--version'], pattern: /^kwok version (v\S+)/, fitting: ['v0.8.'] },
  'sandbox-kubelet': { args: ['--version'], pattern: /^sandbox-kubelet (v\S+)/, fitting: [kubeletVersion] },
  // kubectl supports API servers one minor version older and newer.
  kubectl: {
    args: ['version', '--client'],
    pattern: /^Client Version: (v\S+)/,
    fitting: ['v1.35.', 'v1.36.', 'v1.37.'],
  },
  helm: { args: ['version', '--short'], pattern: /^(v\S+)/, fitting: ['v4.'] },
};

const namingVariables = [
  ['etcd', 'TEST_ASSET_ETCD'],
  ['kube-apiserver', 'TEST_ASSET_KUBE_APISERVER'],
] as const;
const folderVariables = ['DRAWBRIDGE_PROGRAMS', 'KUBEBUILDER_ASSETS'] as const;

/**
 * The programs that the environment provides. TEST_ASSET_ETCD and TEST_ASSET_KUBE_APISERVER name one program each, of any version. A
 * program of the folders DRAWBRIDGE_PROGRAMS and KUBEBUILDER_ASSETS counts if its version fits; `onProgress` reports one that does not. Throws if
 * TEST_ASSET_* names no executable file.
 */
export async function findPrograms(env: NodeJS.ProcessEnv, onProgress: OnProgress): Promise<Partial<Binaries>> {
  const found: Partial<Record<Program, string>> = {};
  for (const [program, variable] of namingVariables) {
    const path = env[variable];
    if (!path) continue;
    if (!(await isExecutable(path))) throw new Error(`${variable} names ${path}, which is not an executable file`);
    found[program] = path;
  }
  for (const variable of folderVariables) {
    const folder = env[variable];
    for (const program of folder ? programs.filter((name) => !found[name]) : []) {
      const path = join(folder ?? '', program);
      if (!(await isExecutable(path))) continue;
      const version = await versionOf(program, path);
      const { fitting } = versions[program];
      if (fitting.some((prefix) => version.startsWith(prefix))) found[program] = path;
      else onProgress(`${path} of ${variable} is ${version}; allowed: ${fitting.map((one) => `${one}x`).join(', ')}`);
    }
  }
  return found;
}

async function versionOf(program: Program, path: string): Promise<string> {
  const { args, pattern } = versions[program];
  const answer = await run(path, args).catch(() => undefined);
  return pattern.exec(answer?.stdout ?? '')?.[1] ?? 'of an unknown version';
}

import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPrograms } from '../../../../sandbox/build/found-programs.ts';

describe('programs that exist already', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'programs-'));
    await program('fitting/etcd', 'etcd Version: 3.6.11\nGit SHA: 1a2b3c4');
    await program('fitting/kube-apiserver', 'Kubernetes v1.36.0');
    await program('fitting/kubectl', 'Client Version: v1.35.2\nKustomize Version: v5.8.1');
    await program('old/etcd', 'etcd Version: 3.5.9');
    await program('old/kube-apiserver', 'Kubernetes v1.31.0');
    await program('newer/kube-apiserver', 'Kubernetes v1.36.9');
    await program('foreign/kwok', 'no version here');
  });

  after(() => rm(folder, { recursive: true }));

  async function program(path: string, output: string): Promise<void> {
    const file = join(folder, path);
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, `#!/bin/sh\necho '${output}'\n`);
    await chmod(file, 0o755);
  }

  interface Case {
    readonly title: string;
    /** Values are paths in the folder. */
    readonly env: Record<string, string>;
    readonly found?: Record<string, string>;
    readonly progress?: readonly RegExp[];
  }

  const cases: readonly Case[] = [
    { title: 'are none without variables', env: {} },
    { title: 'are none in a folder that does not exist', env: { KUBEBUILDER_ASSETS: 'absent' } },
    {
      title: 'come from the folder of envtest if they are of the same minor version',
      env: { KUBEBUILDER_ASSETS: 'fitting' },
      found: { etcd: 'fitting/etcd', 'kube-apiserver': 'fitting/kube-apiserver', kubectl: 'fitting/kubectl' },
    },
    {
      title: 'are reported, and not used, if they are of another minor version',
      env: { KUBEBUILDER_ASSETS: 'old' },
      progress: [
        /old\/etcd of KUBEBUILDER_ASSETS is 3\.5\.9; allowed: 3\.6\.x$/,
        /old\/kube-apiserver of KUBEBUILDER_ASSETS is v1\.31\.0; allowed: v1\.36\.x$/,
      ],
    },
    {
      title: 'come from DRAWBRIDGE_PROGRAMS first',
      env: { DRAWBRIDGE_PROGRAMS: 'newer', KUBEBUILDER_ASSETS: 'fitting' },
      found: { etcd: 'fitting/etcd', 'kube-apiserver': 'newer/kube-apiserver', kubectl: 'fitting/kubectl' },
    },
    {
      title: 'are not used if they print no version',
      env: { DRAWBRIDGE_PROGRAMS: 'foreign' },
      progress: [/foreign\/kwok of DRAWBRIDGE_PROGRAMS is of an unknown version; allowed: v0\.8\.x$/],
    },
    {
      title: 'are used whatever their version if a variable names one program',
      env: {
        TEST_ASSET_ETCD: 'old/etcd',
        TEST_ASSET_KUBE_APISERVER: 'old/kube-apiserver',
        KUBEBUILDER_ASSETS: 'fitting',
      },
      found: { etcd: 'old/etcd', 'kube-apiserver': 'old/kube-apiserver', kubectl: 'fitting/kubectl' },
    },
  ];
  for (const { title, env, found = {}, progress = [] } of cases) {
    it(title, async () => {
      const lines: string[] = [];
      const inFolder = (paths: Record<string, string>): Record<string, string> =>
        Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, join(folder, path)]));
      assert.deepEqual(await findPrograms(inFolder(env), (line) => lines.push(line)), inFolder(found));
      assert.equal(lines.length, progress.length, lines.join('\n'));
      for (const [index, pattern] of progress.entries()) assert.match(lines[index] ?? '', pattern);
    });
  }

  it('must exist if a variable names one program', async () => {
    const env = { TEST_ASSET_ETCD: join(folder, 'absent') };
    await assert.rejects(
      findPrograms(env, () => undefined),
      /TEST_ASSET_ETCD names .*absent, which is not an executable/,
    );
  });
});

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './run.ts';

/**
 * Makes the Go module in `folder` from which programs of another Kubernetes version are built: that version's own go.mod, with the
 * modules of its staging folder as they were published. Go checks all of them against its checksum database.
 */
export async function writeKubernetesModule(folder: string, version: string): Promise<void> {
  const kubernetes = `k8s.io/kubernetes@${version}`;
  const answer = await run('go', ['mod', 'download', '-json', kubernetes], { cwd: '/' });
  if (answer.code !== 0) throw new Error(`${kubernetes} could not be downloaded:\n${answer.stdout}${answer.stderr}`);
  const { GoMod: path } = JSON.parse(answer.stdout) as { readonly GoMod: string };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'go.mod'), moduleOf(await readFile(path, 'utf8'), version));
}

/** Kubernetes v1.34.4 publishes its staging modules as v0.34.4. */
function moduleOf(own: string, version: string): string {
  const staged = version.replace(/^v1\./, 'v0.');
  return own
    .replace(/^module .*$/m, 'module drawbridge.dev/sandbox/kubernetes')
    .replace(/=> \.\/staging\/src\/(\S+)/g, `=> $1 ${staged}`)
    .concat(`\nrequire k8s.io/kubernetes ${version}\n`);
}

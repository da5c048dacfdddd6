import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../sandbox/build/run.ts';

const module = 'github.com/argoproj/argo-rollouts@v1.9.0';

/** The file with the CRD of Rollouts in Argo's own Go module, whose checksum Go verifies; its controller does not run. */
export async function rolloutCrd(): Promise<string> {
  // Outside the modules of this repository, so that no go.mod applies.
  const { stdout, stderr, code } = await run('go', ['mod', 'download', '-json', module], { cwd: tmpdir() });
  if (code !== 0) throw new Error(`go mod download ${module} ended with ${code}:\n${stderr}${stdout}`);
  const { Dir: directory } = JSON.parse(stdout) as { Dir: string };
  return join(directory, 'manifests', 'crds', 'rollout-crd.yaml');
}

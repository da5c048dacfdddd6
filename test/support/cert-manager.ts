import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../sandbox/build/run.ts';
import type { Plane } from '../../sandbox/plane.ts';
import { applyCrds } from '../../sandbox/readiness.ts';

const module = 'github.com/cert-manager/cert-manager@v1.21.2';

/** Installs cert-manager's CRDs from its Go module, whose checksum Go verifies; its programs do not run. */
export async function installCertManagerCrds(plane: Plane): Promise<void> {
  // Outside the modules of this repository, so that no go.mod applies.
  const { stdout, stderr, code } = await run('go', ['mod', 'download', '-json', module], { cwd: tmpdir() });
  if (code !== 0) throw new Error(`go mod download ${module} ended with ${code}:\n${stderr}${stdout}`);
  const { Dir: directory } = JSON.parse(stdout) as { Dir: string };
  await applyCrds(
    plane,
    ['issuers', 'certificates'].map((name) => join(directory, 'deploy', 'crds', `cert-manager.io_${name}.yaml`)),
  );
}

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../sandbox/build/run.ts';
import type { Plane } from '../../sandbox/plane.ts';
import { applyCrds } from '../../sandbox/readiness.ts';

const certManager = 'github.com/cert-manager/cert-manager@v1.21.2';
const prometheusOperator = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';

export const installCertManagerCrds = (plane: Plane): Promise<void> =>
  installCrds(
    plane,
    certManager,
    ['issuers', 'certificates'].map((name) => `deploy/crds/cert-manager.io_${name}.yaml`),
  );

export const installPrometheusOperatorCrds = (plane: Plane): Promise<void> => {
  const file = (name: string): string => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`;
  return installCrds(plane, prometheusOperator, ['prometheusrules', 'servicemonitors'].map(file));
};

/** Installs CRDs from a Go module, whose checksum Go verifies; its programs do not run. */
async function installCrds(plane: Plane, module: string, files: readonly string[]): Promise<void> {
  // Outside the modules of this repository, so that no go.mod applies.
  const { stdout, stderr, code } = await run('go', ['mod', 'download', '-json', module], { cwd: tmpdir() });
  if (code !== 0) throw new Error(`go mod download ${module} ended with ${code}:\n${stderr}${stdout}`);
  const { Dir: directory } = JSON.parse(stdout) as { Dir: string };
  await applyCrds(
    plane,
    files.map((file) => join(directory, file)),
  );
}

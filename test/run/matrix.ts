import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { testedKubernetes, usualKubernetes } from '../../sandbox/versions.ts';

/**
 * `make matrix`: the tests below with the programs of each supported Kubernetes version. Writes
 * docs/reference/kubernetes-versions.md. Exit code 1 if a test fails.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const tests = [
  { title: 'policies', file: 'test/integration/access/without-webhooks.test.ts' },
  { title: 'install', file: 'test/e2e/install.test.ts' },
  { title: 'access', file: 'test/e2e/access.test.ts' },
  { title: 'gateway', file: 'test/e2e/gateway.test.ts' },
  { title: 'uninstall', file: 'test/e2e/uninstall.test.ts' },
];
/** Some versions only: `make matrix VERSIONS="v1.34.4 v1.37.2"`. It leaves the page as it is. */
const chosen = process.argv.slice(2);
const versions: readonly string[] = chosen.length > 0 ? chosen : testedKubernetes;

function passes(version: string): boolean {
  console.log(`\nKubernetes ${version}`);
  const env = { ...process.env, DRAWBRIDGE_KUBERNETES: version, DRAWBRIDGE_TEST_PROCESSES: '1' };
  const program = ['--import', 'tsx', 'test/run/main.ts', ...tests.map(({ file }) => file)];
  return spawnSync(process.execPath, program, { cwd: root, env, stdio: 'inherit' }).status === 0;
}

const page = `<!-- Written by make matrix. Do not edit: run it again. -->

# Kubernetes versions

| Kubernetes | on a real control plane | on a [real node](../adr/0003-sandbox.md) |
| --- | --- | --- |
${testedKubernetes.map((version) => `| ${version} | ${version === usualKubernetes ? 'all tests' : 'policies'} | ${version === usualKubernetes ? 'all tests' : 'installation, access until its end, gateway, uninstallation'} |`).join('\n')}

All of these pass. \`make matrix\` runs them again, with the programs of each version.
`;

const failed = versions.filter((version) => !passes(version));
if (failed.length > 0) {
  console.log(`\nfailed on Kubernetes ${failed.join(', ')}`);
  process.exitCode = 1;
} else if (chosen.length === 0) {
  writeFileSync(join(root, 'docs/reference/kubernetes-versions.md'), page);
  console.log(page);
}

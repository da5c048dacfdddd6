import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pkg from '../package.json' with { type: 'json' };

/** `make npm`: the npm package of the client, in `dist/npm`. It has one file and no dependencies, because the bundle contains them. */
const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist/npm');
const { version, description, license, engines } = pkg;
const program = 'client.cjs';

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
copyFileSync(join(root, 'dist/client.cjs'), join(folder, program));
chmodSync(join(folder, program), 0o755);
copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
copyFileSync(join(root, 'docs/tasks/request-access.md'), join(folder, 'README.md'));
const names = ['drawbridge', 'kubectl-drawbridge', 'kubectl_complete-drawbridge'];
const manifest = {
  name: 'drawbridge',
  version,
  description,
  license,
  type: 'module',
  engines,
  bin: Object.fromEntries(names.map((name) => [name, program])),
};
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crdFiles } from './crd-files.ts';

const files = crdFiles();

// crds/ is for kubectl; templates may only read what lies elsewhere in a chart that Helm is not to install crds/ of.
for (const part of ['crds', 'files/crds']) {
  const folder = join(import.meta.dirname, 'drawbridge', part);
  mkdirSync(folder, { recursive: true });
  for (const stale of readdirSync(folder)) if (!files.has(stale)) rmSync(join(folder, stale));
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
}

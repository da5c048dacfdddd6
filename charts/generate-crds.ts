import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crdFiles, crdFolders } from './crd-files.ts';

for (const [part, kinds] of Object.entries(crdFolders)) {
  const files = crdFiles(kinds);
  const folder = join(import.meta.dirname, 'drawbridge', part);
  mkdirSync(folder, { recursive: true });
  for (const stale of readdirSync(folder)) if (!files.has(stale)) rmSync(join(folder, stale));
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
}

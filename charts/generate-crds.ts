import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crdFiles, crdFolders } from './crd-files.ts';

for (const [name, kinds] of Object.entries(crdFolders)) {
  const files = crdFiles(kinds);
  const folder = join(import.meta.dirname, 'drawbridge', name);
  mkdirSync(folder, { recursive: true });
  for (const existing of readdirSync(folder)) if (!files.has(existing)) rmSync(join(folder, existing));
  for (const [file, content] of files) writeFileSync(join(folder, file), content);
}

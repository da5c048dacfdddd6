import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crdFiles } from './crd-files.ts';

const folder = join(import.meta.dirname, 'drawbridge', 'crds');
const files = crdFiles();

for (const stale of readdirSync(folder)) if (!files.has(stale)) rmSync(join(folder, stale));
for (const [name, content] of files) writeFileSync(join(folder, name), content);

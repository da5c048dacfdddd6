import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { webhookFiles } from './webhook-files.ts';

const folder = import.meta.dirname;
const files = webhookFiles();

for (const stale of readdirSync(folder)) {
  if (stale.endsWith('.yaml') && !files.has(stale)) rmSync(join(folder, stale));
}
for (const [name, content] of files) writeFileSync(join(folder, name), content);

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { webhookFiles } from './webhook-files.ts';

const files = webhookFiles();

// The chart can only read what lies inside of it.
for (const folder of [import.meta.dirname, join(import.meta.dirname, '../charts/drawbridge/files/webhooks')]) {
  mkdirSync(folder, { recursive: true });
  for (const stale of readdirSync(folder)) {
    if (stale.endsWith('.yaml') && !files.has(stale)) rmSync(join(folder, stale));
  }
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
}

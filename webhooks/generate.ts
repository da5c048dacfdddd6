import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folders, webhookFiles } from './webhook-files.ts';

for (const feature of ['access', 'inventory'] as const) {
  const files = webhookFiles(feature);
  const { here, chart } = folders[feature];
  // The chart can read only files inside its own folder.
  for (const folder of [
    join(import.meta.dirname, here),
    join(import.meta.dirname, '../charts/drawbridge/files', chart),
  ]) {
    mkdirSync(folder, { recursive: true });
    for (const existing of readdirSync(folder)) {
      if (existing.endsWith('.yaml') && !files.has(existing)) rmSync(join(folder, existing));
    }
    for (const [name, content] of files) writeFileSync(join(folder, name), content);
  }
}

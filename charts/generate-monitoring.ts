import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { monitoringFiles } from './monitoring-files.ts';

const chart = join(import.meta.dirname, 'drawbridge');
for (const folder of ['rules', 'dashboards']) rmSync(join(chart, 'files', folder), { recursive: true, force: true });
for (const [path, content] of monitoringFiles()) {
  mkdirSync(dirname(join(chart, path)), { recursive: true });
  writeFileSync(join(chart, path), content);
}

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isGenerated } from './markdown.ts';
import { referencePages } from './pages.ts';

const folder = join(import.meta.dirname, '../reference');
const pages = referencePages();
// Some pages beside the generated ones are written by hand.
for (const name of readdirSync(folder)) {
  const path = join(folder, name);
  if (!pages.has(name) && isGenerated(readFileSync(path, 'utf8'))) rmSync(path);
}
for (const [name, content] of pages) writeFileSync(join(folder, name), content);

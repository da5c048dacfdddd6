import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isGenerated } from './markdown.ts';
import { generatedPages } from './pages.ts';

const docs = join(import.meta.dirname, '..');
const pages = generatedPages();
// Some pages beside the generated ones are written by hand.
for (const folder of ['reference', 'security', 'binding', 'inventory']) {
  for (const name of readdirSync(join(docs, folder))) {
    const path = `${folder}/${name}`;
    if (!pages.has(path) && isGenerated(readFileSync(join(docs, path), 'utf8'))) rmSync(join(docs, path));
  }
}
for (const [path, content] of pages) writeFileSync(join(docs, path), content);

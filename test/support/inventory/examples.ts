import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../src/api/object.ts';

/** Objects in a file of examples/inventory. */
export function inventoryExample(file: string): KubeObject[] {
  const path = fileURLToPath(new URL(`../../../examples/inventory/${file}`, import.meta.url));
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as KubeObject);
}

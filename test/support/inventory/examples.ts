import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../src/api/object.ts';

/** Objects in a file of examples/inventory. */
export function inventoryExample(file: string): KubeObject[] {
  const path = fileURLToPath(new URL(`../../../examples/inventory/${file}`, import.meta.url));
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as KubeObject);
}

/** The registrations of the reference components, with other endpoints. */
export function registrationsAt(urlOf: (component: string) => string): KubeObject[] {
  return inventoryExample('components.yaml').map((object) => {
    const { caBundle: _, ...spec } = object.spec as { caBundle?: string };
    return { ...object, spec: { ...spec, endpoint: { url: urlOf(object.metadata.name) } } };
  });
}

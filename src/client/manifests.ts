import { readFile } from 'node:fs/promises';
import { accessKinds } from '../api/access/kinds.ts';
import type { KubeObject, Resource } from '../api/object.ts';
import { describe, quote } from '../kit/errors.ts';
import { isRecord, listIn, own } from '../kit/json-value.ts';
import { loadManifests } from '../kube/yaml.ts';
import type { Io } from './command.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';

/** A template or a request of a file. The API server checks its fields. */
export interface Manifest {
  readonly file: string;
  readonly resource: Resource;
  readonly object: KubeObject;
}

export interface Manifests {
  readonly found: readonly Manifest[];
  /** Objects of other kinds. */
  readonly skipped: number;
}

/** `-` is standard input. Rejects with a Problem if a file cannot be read, or is no YAML. */
export async function readManifests(files: readonly string[], io: Pick<Io, 'stdin'>): Promise<Manifests> {
  const found: Manifest[] = [];
  let skipped = 0;
  for (const file of files) {
    for (const object of objectsIn(file, await textOf(file, io))) {
      const resource = accessKinds.find((kind) => kind.resource.kind === object.kind)?.resource;
      if (resource) found.push({ file, resource, object });
      else skipped++;
    }
  }
  return { found, skipped };
}

async function textOf(file: string, io: Pick<Io, 'stdin'>): Promise<string> {
  try {
    if (file !== '-') return await readFile(file, 'utf8');
    const chunks: Uint8Array[] = [];
    for await (const chunk of io.stdin) chunks.push(chunk);
    return Buffer.concat(chunks).toString('utf8');
  } catch (error) {
    throw new Problem(exits.usage, `cannot read ${quote(file, 256)}: ${describe(error)}`);
  }
}

/** With the items of Lists. */
function objectsIn(file: string, text: string): KubeObject[] {
  let documents: unknown[];
  try {
    documents = loadManifests(text);
  } catch (error) {
    throw new Problem(exits.denied, `${quote(file, 256)} is no valid YAML: ${describe(error)}; correct it`);
  }
  return documents.flatMap(withItems).filter(isRecord).map(asObject);
}

const withItems = (document: unknown): readonly unknown[] =>
  own(document, 'kind') === 'List' ? listIn(document, 'items') : [document];

/** What is missing stays so, for the API server to say. */
function asObject(document: Record<string, unknown>): KubeObject {
  const metadata = own(document, 'metadata');
  return { ...document, metadata: isRecord(metadata) ? metadata : {} } as KubeObject;
}

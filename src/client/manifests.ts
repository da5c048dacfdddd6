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
  const objects: (readonly [file: string, object: KubeObject])[] = [];
  for (const file of files) {
    for (const object of objectsIn(file, await textOf(file, io))) objects.push([file, object]);
  }
  const found = objects.flatMap(([file, object]): Manifest[] => {
    const resource = accessKinds.find((kind) => kind.resource.kind === object.kind)?.resource;
    return resource ? [{ file, resource, object }] : [];
  });
  return { found, skipped: objects.length - found.length };
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

/** With the items of Lists. What an object lacks stays so, for the API server to say. */
function objectsIn(file: string, text: string): KubeObject[] {
  try {
    return loadManifests(text)
      .flatMap((document) => (own(document, 'kind') === 'List' ? listIn(document, 'items') : [document]))
      .filter(isRecord)
      .map((object) => ({ ...object, metadata: own(object, 'metadata') ?? {} }) as KubeObject);
  } catch (error) {
    throw new Problem(exits.denied, `${quote(file, 256)} is no valid YAML: ${describe(error)}; correct it`);
  }
}

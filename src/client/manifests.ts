import { createReadStream } from 'node:fs';
import { accessKinds } from '../api/access/kinds.ts';
import type { KubeObject, Resource } from '../api/object.ts';
import { describe, quote } from '../kit/errors.ts';
import { copyJson, isRecord, listIn, own } from '../kit/json-value.ts';
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

/** Of a file: the API server stores objects up to 1.5 MiB. A device may have no end. */
const MAX_MIB = 4;

async function textOf(file: string, io: Pick<Io, 'stdin'>): Promise<string> {
  try {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of file === '-' ? io.stdin : (createReadStream(file) as AsyncIterable<Uint8Array>)) {
      size += chunk.length;
      if (size > MAX_MIB * 1024 * 1024) throw new Error(`it is larger than ${MAX_MIB} MiB; split it`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  } catch (error) {
    throw new Problem(exits.usage, `cannot read ${quote(file, 256)}: ${describe(error)}`);
  }
}

/** What an object lacks stays so, for the API server to say. */
function objectsIn(file: string, text: string): KubeObject[] {
  // Each alias counts as often as it stands, and one that contains itself is too deep.
  const copy = copyJson(documentsIn(file, text));
  if ('problem' in copy) {
    const remedy = copy.tooLarge ? 'each alias counts: split it' : 'correct it';
    throw new Problem(exits.usage, `${quote(file, 256)} ${copy.problem}; ${remedy}`);
  }
  return (copy.value as readonly unknown[]).flatMap((document, index) =>
    (document === null ? [] : itemsOf(document)).map((object) => {
      if (isRecord(object)) return { ...object, metadata: own(object, 'metadata') ?? {} } as KubeObject;
      const found = object === null ? 'null' : Array.isArray(object) ? 'a list' : `a ${typeof object}`;
      throw new Problem(
        exits.usage,
        `${quote(file, 256)}, document ${index + 1}: found ${found}; each must be an object, or a List of objects`,
      );
    }),
  );
}

function documentsIn(file: string, text: string): readonly unknown[] {
  try {
    return loadManifests(text);
  } catch (error) {
    throw new Problem(exits.denied, `${quote(file, 256)} is no valid YAML: ${describe(error)}; correct it`);
  }
}

const listKinds: readonly unknown[] = ['List', ...accessKinds.map(({ resource }) => `${resource.kind}List`)];

/** Those of Lists, of which items may lack the kind, or the document itself. */
function itemsOf(document: unknown): readonly unknown[] {
  const kind = own(document, 'kind');
  if (!listKinds.includes(kind)) return [document];
  return listIn(document, 'items').flatMap((item) =>
    itemsOf(isRecord(item) ? { kind: String(kind).replace(/List$/, ''), ...item } : item),
  );
}

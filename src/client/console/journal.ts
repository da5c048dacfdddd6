import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { KubeObject } from '../../api/object.ts';
import { configMaps, pods } from '../../api/resources.ts';
import { headNames } from '../../audit/head.ts';
import { listIn, own } from '../../kit/json-value.ts';
import { resourcePath } from '../../kube/api-paths.ts';
import { type ClusterConnection, inNamespace } from '../cluster-connection.ts';
import { problemOf } from '../problem.ts';
import { type Call, nameIn, Refusal } from './call.ts';
import type { Journal } from './wire.ts';

const MAX_PODS = 16;
const MIB = 1024 * 1024;
/** Bytes of a file. */
const MAX_FILE = 64 * MIB;
const MAX_ALL = 256 * MIB;

/** In the chart. */
const serverLabel = 'app.kubernetes.io/name=drawbridge';
const container = 'drawbridge';
const lineStart = '{"chain":"';

type File = Journal['files'][number];

/** The journal that the commands of the page read, in a folder that only this user may read. */
export class JournalFolder {
  /** Of the server, and of its signed heads. */
  namespace = 'drawbridge-system';
  /** Paths of the signed heads from before the logs were read: later ones cover further lines. */
  heads: readonly string[] = [];
  #folder = '';
  readonly #files = new Map<string, File>();
  #problems: string[] = [];
  #turn: Promise<unknown> = Promise.resolve();

  get paths(): readonly string[] {
    return [...this.#files.keys()].map((name) => join(this.#folder, name));
  }

  async answer({ method, query, connection, body, signal, json }: Call): Promise<void> {
    const change = async (): Promise<void> => {
      if (method === 'DELETE') await this.#forget(() => true);
      if (method === 'PUT') await this.#add(fileName(query.get('name') ?? ''), body);
      if (method !== 'POST') return;
      this.namespace = nameIn(query, 'namespace') ?? this.namespace;
      await this.#readLogs(inNamespace(connection, this.namespace), signal);
    };
    if (method !== 'GET') {
      // One change at a time.
      const done = this.#turn.then(change);
      this.#turn = done.catch(() => undefined);
      await done;
    }
    await json({ files: [...this.#files.values()], problems: this.#problems } satisfies Journal);
  }

  /** Removes the folder, once the calls have ended: their signal has aborted. */
  async end(): Promise<void> {
    await this.#turn;
    if (this.#folder !== '') await rm(this.#folder, { recursive: true, force: true });
  }

  async #forget(isForgotten: (file: File) => boolean): Promise<void> {
    this.#problems = [];
    this.heads = [];
    for (const file of [...this.#files.values()].filter(isForgotten)) await this.#remove(file.name);
  }

  async #add(name: string, body: AsyncIterable<Uint8Array>): Promise<void> {
    if (this.#files.has(name)) throw new Refusal(409, `${name} is already there; rename the file, or forget all first`);
    const { isWhole } = await this.#write(name, 'file', body);
    if (isWhole) return;
    await this.#remove(name);
    const most = `a file has at most ${MAX_FILE / MIB} MiB, all have ${MAX_ALL / MIB} MiB`;
    throw new Refusal(413, `${name} is too large: ${most}`);
  }

  async #readLogs(connection: ClusterConnection, signal: AbortSignal): Promise<void> {
    await this.#forget(({ from }) => from === 'pod');
    const { cluster, namespace } = connection;
    const note = (what: string, error: unknown) => this.#problems.push(`${what}: ${problemOf(error).message}`);
    let found: KubeObject[];
    try {
      const { items } = await cluster.client.list(pods, { namespace, labelSelector: serverLabel, signal });
      found = items.filter(({ spec }) => listIn(spec, 'containers').some((one) => own(one, 'name') === container));
    } catch (error) {
      note(`cannot list the pods of the server in namespace ${namespace}`, error);
      return;
    }
    await this.#readHeads(connection);
    if (found.length > MAX_PODS) this.#problems.push(`only the logs of ${MAX_PODS} of ${found.length} pods were read`);
    for (const { name } of found.slice(0, MAX_PODS).map(({ metadata }) => metadata)) {
      try {
        const path = resourcePath(pods, { namespace, name, subresource: 'log' });
        const bytes = await cluster.own.stream(`${path}?container=${container}&limitBytes=${MAX_FILE + 1}`, signal);
        const file = fileName(`${name}.log`);
        const { isWhole, hasLines } = await this.#write(file, 'pod', bytes);
        if (!hasLines) await this.#remove(file);
        else if (!isWhole) this.#problems.push(`the log of pod ${name} is too long: only its beginning was read`);
      } catch (error) {
        note(`cannot read the log of pod ${name}`, error);
      }
    }
    if (this.#problems.length === 0 && this.#files.size === 0)
      this.#problems.push(
        `no pod with the label ${serverLabel} in namespace ${namespace} has the journal in its log; name the namespace of the server or, if it writes the journal to a volume, add the files`,
      );
  }

  /** Without them, `audit verify` says why. */
  async #readHeads({ cluster, namespace }: ClusterConnection): Promise<void> {
    for (const { heads: name } of Object.values(headNames)) {
      const found = await cluster.client.get(configMaps, { namespace, name }).catch(() => undefined);
      if (!found) continue;
      // No file of the journal has such a name.
      const path = join(await this.#open(), `.${name}`);
      await writeFile(path, JSON.stringify(found), { mode: 0o600 });
      this.heads = [...this.heads, path];
    }
  }

  async #open(): Promise<string> {
    this.#folder ||= await mkdtemp(join(tmpdir(), 'drawbridge-console-'));
    return this.#folder;
  }

  /** `isWhole`: the file has all bytes. `hasLines`: also lines of a journal. */
  async #write(name: string, from: File['from'], chunks: AsyncIterable<Uint8Array>) {
    const path = join(await this.#open(), name);
    const most = [...this.#files.values()].reduce((left, file) => left - file.bytes, MAX_ALL);
    let [bytes, hasLines, isWhole] = [0, false, true];
    const bounded = async function* (): AsyncIterable<Uint8Array> {
      for await (const chunk of chunks) {
        const part = chunk.subarray(0, Math.min(MAX_FILE, most) - bytes);
        // A body is read to its end: its sender then reads the answer.
        if (part.length < chunk.length) isWhole = false;
        if (part.length === 0) continue;
        bytes += part.length;
        hasLines ||= Buffer.from(part.buffer, part.byteOffset, part.length).includes(lineStart);
        yield part;
      }
    };
    try {
      await pipeline(bounded, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
    } catch (error) {
      // One of the same name stays.
      if (own(error, 'code') !== 'EEXIST') await rm(path, { force: true });
      throw error;
    }
    this.#files.set(name, { name, bytes, from });
    return { isWhole, hasLines };
  }

  async #remove(name: string): Promise<void> {
    this.#files.delete(name);
    await rm(join(this.#folder, name), { force: true });
  }
}

/** Without what could lead out of the folder. */
function fileName(text: string): string {
  const safe = text.replaceAll(/[^\w.-]/g, '-').replace(/^\.+/, '');
  return safe.slice(-100) || 'journal';
}

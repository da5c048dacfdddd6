import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlaneClient } from '../plane-client.ts';
import type { PodManifest, Volume, VolumeSource } from './pod-manifest.ts';

type Files = ReadonlyMap<string, Buffer>;

/** The files of one volume in a folder of this machine. As with kubelet, all files of a version appear in one step. */
export class MountedVolume {
  readonly folder: string;
  readonly #plane: PlaneClient;
  readonly #pod: PodManifest;
  readonly #volume: Volume;
  #version = '';
  #count = 0;

  constructor(plane: PlaneClient, pod: PodManifest, volume: Volume, parent: string) {
    this.folder = join(parent, volume.name);
    this.#plane = plane;
    this.#pod = pod;
    this.#volume = volume;
  }

  /** Updates the files. False while a required Secret or ConfigMap does not exist. */
  async refresh(): Promise<boolean> {
    await mkdir(this.folder, { recursive: true });
    const files = new Map<string, Buffer>();
    for (const source of this.#volume.projected?.sources ?? [this.#volume]) {
      const found = await this.#filesOf(source);
      if (found === undefined) return false;
      for (const [name, content] of found) files.set(name, content);
    }
    await this.#write(files);
    return true;
  }

  async #filesOf(source: VolumeSource): Promise<Files | undefined> {
    if (source.serviceAccountToken) return this.#token(source.serviceAccountToken.path);
    if (source.downwardAPI) {
      return new Map(source.downwardAPI.items.map(({ path }) => [path, Buffer.from(this.#pod.metadata.namespace)]));
    }
    if (source.secret) return this.#data('secrets', source.secret.secretName ?? source.secret.name ?? '', 'base64');
    if (source.configMap) return this.#data('configmaps', source.configMap.name, 'utf8');
    if (source.emptyDir) return new Map();
    throw new Error(`volume ${this.#volume.name}: the sandbox supports no volume of this kind`);
  }

  async #token(path: string): Promise<Files | undefined> {
    // Requested once, because a token is valid for longer than a test runs.
    if (this.#version !== '') return new Map();
    const { namespace } = this.#pod.metadata;
    const token = await this.#plane.serviceAccountToken(namespace, this.#pod.spec.serviceAccountName);
    return new Map([[path, Buffer.from(token)]]);
  }

  async #data(plural: string, name: string, encoding: BufferEncoding): Promise<Files | undefined> {
    const { status, body } = await this.#plane.probe(
      `/api/v1/namespaces/${this.#pod.metadata.namespace}/${plural}/${name}`,
    );
    if (status !== 200) return undefined;
    const data = (body as { data?: Record<string, string> }).data ?? {};
    return new Map(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, encoding)]));
  }

  async #write(files: Files): Promise<void> {
    const version = [...files].map(([name, content]) => `${name} ${content.toString('base64')}`).join('\n');
    // A token is written only once, whatever else the volume projects.
    if (version === this.#version || (this.#version !== '' && this.#volume.projected)) return;
    this.#count += 1;
    const data = `..${this.#count}`;
    await mkdir(join(this.folder, data));
    for (const [name, content] of files) {
      await writeFile(join(this.folder, data, name), content, { mode: 0o600 });
      await symlink(join('..data', name), join(this.folder, name)).catch(ignoreExisting);
    }
    const draft = join(this.folder, '..data_tmp');
    await symlink(data, draft);
    await rename(draft, join(this.folder, '..data'));
    this.#version = version;
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

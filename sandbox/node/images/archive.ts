import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from '../../build/run.ts';

/** The configuration of an image, as in its `config`. */
export interface ImageConfig {
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
}

/** Writes the files of a folder as an image of one layer, in the format of `docker save`. Deletes the folder. */
export async function writeArchive(archive: string, name: string, files: string, config: ImageConfig): Promise<void> {
  const parts = await mkdtemp(`${archive}-`);
  try {
    await mkdir(join(parts, 'layer'));
    const layer = join(parts, 'layer/layer.tar');
    const sameEachTime = ['--sort=name', '--mtime=2026-01-01', '--owner=0', '--group=0', '--numeric-owner'];
    await tar('-C', files, ...sameEachTime, '-cf', layer, '.');
    await rm(files, { recursive: true });
    const description = JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [`sha256:${await sha256Of(layer)}`] },
      history: [{ created: '2026-01-01T00:00:00Z' }],
    });
    const id = createHash('sha256').update(description).digest('hex');
    const manifest = [{ Config: `${id}.json`, RepoTags: [name], Layers: ['layer/layer.tar'] }];
    await writeFile(join(parts, `${id}.json`), description);
    await writeFile(join(parts, 'manifest.json'), JSON.stringify(manifest));
    await tar('-C', parts, '-cf', join(parts, 'image.tar'), 'manifest.json', `${id}.json`, 'layer/layer.tar');
    await rename(join(parts, 'image.tar'), archive);
  } finally {
    await rm(parts, { recursive: true, force: true });
  }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

async function tar(...args: string[]): Promise<void> {
  const { code, stderr } = await run('tar', args);
  if (code !== 0) throw new Error(`tar ${args.join(' ')} ended with ${code}: ${stderr}`);
}

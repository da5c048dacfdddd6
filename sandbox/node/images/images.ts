import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheRoot } from '../../build/binaries.ts';
import { withLock } from '../../build/lock.ts';
import { type OnProgress, reporting } from '../../build/progress.ts';
import { buildDockerfile, checkedOutFiles, checkout } from './dockerfile.ts';
import { baseImage, type LocalImage, podImages, writeLocalImage } from './local.ts';
import { drawbridgeRepository } from './names.ts';

/** How many archives the cache keeps; the oldest go first. */
const kept = 12;

/** The archives of the images that a node needs, from the cache or built: about a minute. drawbridge is built from its Dockerfile. */
export async function ensureImages(onProgress: OnProgress = () => undefined): Promise<string[]> {
  const folder = join(cacheRoot(), 'images');
  await mkdir(folder, { recursive: true });
  return withLock(join(folder, 'lock'), async () => {
    const local = (image: LocalImage): Promise<string> => localArchive(folder, image);
    const archives: string[] = [];
    for (const image of podImages) archives.push(await local(image));
    archives.push(await drawbridgeArchive(folder, await local(baseImage), onProgress));
    await prune(folder, archives);
    return archives;
  });
}

/** The image of drawbridge, as the documents name it. */
export async function drawbridgeImage(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8')) as { version: string };
  return `${drawbridgeRepository}:${version}`;
}

async function localArchive(folder: string, image: LocalImage): Promise<string> {
  const sources = (await readdir(import.meta.dirname)).sort().map((file) => join(import.meta.dirname, file));
  const key = await hashOf([...sources, '/usr/bin/busybox', process.execPath], image.name);
  return stored(folder, key, (archive, workspace) => writeLocalImage(archive, workspace, image));
}

async function drawbridgeArchive(folder: string, base: string, onProgress: OnProgress): Promise<string> {
  const name = await drawbridgeImage();
  const ignored = (await readFile(join(checkout, '.dockerignore'), 'utf8')).split('\n');
  const sent = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  const files = await checkedOutFiles('Dockerfile', '.dockerignore', ...sent);
  const key = await hashOf(
    files.map((file) => join(checkout, file)),
    base,
  );
  return stored(folder, key, (archive, workspace) =>
    reporting(`building ${name} from its Dockerfile`, onProgress, async () => {
      const file = join(workspace, 'image.tar');
      const bases = { BUILD_IMAGE: `docker-archive:${base}`, RUNTIME_IMAGE: `docker-archive:${base}` };
      await buildDockerfile({ name, bases, created: 0, target: `docker-archive:${file}:${name}`, workspace });
      await rename(file, archive);
    }),
  );
}

async function hashOf(files: readonly string[], text: string): Promise<string> {
  const hash = createHash('sha256').update(text);
  for (const file of files) hash.update(`\0${file.slice(checkout.length)}\0`).update(await readFile(file));
  return hash.digest('hex');
}

async function stored(
  folder: string,
  key: string,
  build: (archive: string, workspace: string) => Promise<void>,
): Promise<string> {
  const archive = join(folder, `${key}.tar`);
  const now = new Date();
  const isStored = await utimes(archive, now, now).then(
    () => true,
    () => false,
  );
  if (isStored) return archive;
  const workspace = await mkdtemp(join(folder, 'building-'));
  try {
    await build(archive, workspace);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
  return archive;
}

/** Removes archives that have not been used for longest, and what killed builds left. */
async function prune(folder: string, used: readonly string[]): Promise<void> {
  const names = await readdir(folder);
  const archives = names.filter((name) => name.endsWith('.tar')).map((name) => join(folder, name));
  const ages = await Promise.all(archives.map(async (path) => ({ path, usedMs: (await stat(path)).mtimeMs })));
  const old = ages
    .toSorted((a, b) => b.usedMs - a.usedMs)
    .slice(kept)
    .map(({ path }) => path);
  const abandoned = names.filter((name) => name.startsWith('building-')).map((name) => join(folder, name));
  for (const path of [...old.filter((one) => !used.includes(one)), ...abandoned])
    await rm(path, { recursive: true, force: true });
}

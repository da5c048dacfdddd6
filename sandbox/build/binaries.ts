import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { clientOnPath, clientsAreStored, fetchClients, isExecutable } from './clients.ts';
import { findPrograms } from './found-programs.ts';
import { buildGoProgram, goCacheKey, goVersion } from './go.ts';
import { withLock } from './lock.ts';
import { type Binaries, clientPrograms, goPrograms, type Program, programs } from './programs.ts';
import { type OnProgress, reporting } from './progress.ts';

const building = '.building-';

/**
 * Returns the path of every program. Uses the programs that the environment provides, then the cache
 * (`${XDG_CACHE_HOME:-~/.cache}/drawbridge/sandbox/<key>/`), and builds missing ones, which takes about eight minutes the
 * first time. Needs Go only if the environment lacks a program. Several processes may call this at once.
 */
export async function ensureBinaries(options: { readonly onProgress?: OnProgress } = {}): Promise<Binaries> {
  const onProgress = options.onProgress ?? (() => undefined);
  const found = await findPrograms(process.env, onProgress);
  if (isComplete(found)) return found;
  const folder = join(cacheRoot(), await goCacheKey(await goVersion()));
  const cached = Object.fromEntries(programs.map((name) => [name, join(folder, name)]));
  const binaries = { ...cached, ...(await clientsElsewhere(found)), ...found } as Binaries;
  if ((await missing(binaries)).length === 0) return binaries;
  await withLock(`${folder}.lock`, () => fill(folder, binaries, onProgress), {
    onWait: (pid) => onProgress(`process ${pid} is building the sandbox's programs, waiting for it`),
  });
  return binaries;
}

const isComplete = (found: Partial<Binaries>): found is Binaries =>
  programs.every((program) => found[program] !== undefined);

function cacheRoot(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'drawbridge', 'sandbox');
}

async function clientsElsewhere(found: Partial<Binaries>): Promise<Partial<Binaries>> {
  if (clientsAreStored) return {};
  const wanted = clientPrograms.filter((program) => !found[program]);
  return Object.fromEntries(await Promise.all(wanted.map(async (program) => [program, await clientOnPath(program)])));
}

async function missing(binaries: Binaries): Promise<Program[]> {
  const names = Object.keys(binaries) as Program[];
  const present = await Promise.all(names.map((name) => isExecutable(binaries[name])));
  return names.filter((_, index) => !present[index]);
}

async function fill(folder: string, binaries: Binaries, onProgress: OnProgress): Promise<void> {
  // Checks again under the lock, because the previous holder may have built everything.
  const wanted = await missing(binaries);
  await mkdir(folder, { recursive: true });
  await removeAbandoned(folder);
  announce(wanted, folder, onProgress);
  const workspace = await mkdtemp(`${folder}${building}`);
  try {
    for (const program of goPrograms.filter((name) => wanted.includes(name))) {
      await reporting(`building ${program}`, onProgress, () =>
        buildGoProgram(program, workspace, join(folder, program)),
      );
    }
    if (clientPrograms.some((name) => wanted.includes(name))) {
      await reporting('fetching kubectl and helm', onProgress, () => fetchClients(workspace, folder));
    }
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

function announce(wanted: readonly Program[], folder: string, onProgress: OnProgress): void {
  const built = goPrograms.filter((name) => wanted.includes(name));
  if (built.length === 0) return;
  onProgress(`building ${built.join(', ')} from source into ${folder}, once: about eight minutes on two cores`);
  onProgress(
    `set DRAWBRIDGE_PROGRAMS or KUBEBUILDER_ASSETS to a folder that has them for Kubernetes 1.36 to skip this`,
  );
}

// Only the holder of the lock builds, so existing build folders are leftovers of killed builds.
async function removeAbandoned(folder: string): Promise<void> {
  const prefix = `${basename(folder)}${building}`;
  const abandoned = (await readdir(dirname(folder))).filter((name) => name.startsWith(prefix));
  await Promise.all(abandoned.map((name) => rm(join(dirname(folder), name), { recursive: true, force: true })));
}

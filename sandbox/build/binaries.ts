import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { clientOnPath, clientsAreStored, fetchClients, isExecutable } from './clients.ts';
import { findPrograms } from './found-programs.ts';
import { buildGoProgram, goCacheKey, goVersion } from './go.ts';
import { withLock } from './lock.ts';
import {
  type Binaries,
  type ClientProgram,
  clientPrograms,
  componentPrograms,
  type GoProgram,
  type Program,
  programs,
} from './programs.ts';
import { type OnProgress, reporting } from './progress.ts';

const building = 'building-';

/**
 * Returns the path of every program. Uses the programs that the environment provides, then the cache
 * (`${XDG_CACHE_HOME:-~/.cache}/drawbridge/sandbox/<key>/`, a folder for each Go module), and builds missing ones, which
 * takes about eight minutes the first time. Needs Go only if the environment lacks a program. Several processes may call this at once.
 */
export async function ensureBinaries(options: { readonly onProgress?: OnProgress } = {}): Promise<Binaries> {
  const onProgress = options.onProgress ?? (() => undefined);
  const found = await findPrograms(process.env, onProgress);
  if (isComplete(found)) return found;
  const binaries = { ...(await cachePaths()), ...(await clientsElsewhere(found)), ...found } as Binaries;
  if ((await missing(binaries)).length === 0) return binaries;
  await locked(() => fill(binaries, onProgress), onProgress);
  return binaries;
}

/**
 * Returns the paths of further programs, which only a few tests need, so that planes do not wait for their builds. All of a node take about
 * five minutes after those of a plane.
 */
export async function ensureGoPrograms<T extends GoProgram>(
  names: readonly T[],
  { onProgress = () => undefined }: { readonly onProgress?: OnProgress } = {},
): Promise<Readonly<Record<T, string>>> {
  const go = await goVersion();
  const pathOf = async (name: T): Promise<string> => join(cacheRoot(), await goCacheKey(name, go), name);
  const paths = new Map(await Promise.all(names.map(async (name) => [name, await pathOf(name)] as const)));
  const build = (workspace: string, name: T, path: string): Promise<void> =>
    reporting(`building ${name}`, onProgress, () => buildGoProgram(name, workspace, path));
  const fill = async (): Promise<void> => {
    for (const [name, path] of paths) {
      if (await isExecutable(path)) continue;
      await mkdir(dirname(path), { recursive: true });
      await inWorkspace((workspace) => build(workspace, name, path));
    }
  };
  const present = await Promise.all([...paths.values()].map(isExecutable));
  if (present.includes(false)) await locked(fill, onProgress);
  return Object.fromEntries(paths) as Record<T, string>;
}

const locked = (work: () => Promise<void>, onProgress: OnProgress): Promise<void> =>
  withLock(join(cacheRoot(), 'lock'), work, {
    onWait: (pid) => onProgress(`process ${pid} is building the sandbox's programs, waiting for it`),
  });

const isComplete = (found: Partial<Binaries>): found is Binaries =>
  programs.every((program) => found[program] !== undefined);

/** The folder of all that is built for the sandbox. */
export function cacheRoot(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'drawbridge', 'sandbox');
}

async function cachePaths(): Promise<Binaries> {
  const go = await goVersion();
  const pathOf = async (program: Program): Promise<string> => {
    // The clients are those of the Kubernetes version that their neighbor in the cache has.
    const neighbor = isClient(program) ? 'kube-apiserver' : program;
    return join(cacheRoot(), await goCacheKey(neighbor, go), program);
  };
  const entries = await Promise.all(programs.map(async (program) => [program, await pathOf(program)]));
  return Object.fromEntries(entries) as Binaries;
}

const isClient = (program: Program): program is ClientProgram => clientPrograms.some((name) => name === program);

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

async function fill(binaries: Binaries, onProgress: OnProgress): Promise<void> {
  // Checks again under the lock, because the previous holder may have built everything.
  const wanted = await missing(binaries);
  announce(wanted, onProgress);
  await Promise.all(wanted.map((name) => mkdir(dirname(binaries[name]), { recursive: true })));
  await inWorkspace(async (workspace) => {
    for (const program of componentPrograms.filter((name) => wanted.includes(name))) {
      await reporting(`building ${program}`, onProgress, () => buildGoProgram(program, workspace, binaries[program]));
    }
    const client = wanted.find(isClient);
    if (client !== undefined) {
      const folder = dirname(binaries[client]);
      await reporting('fetching kubectl and helm', onProgress, () => fetchClients(workspace, folder));
    }
  });
}

async function inWorkspace(work: (folder: string) => Promise<void>): Promise<void> {
  await removeAbandoned();
  const workspace = await mkdtemp(join(cacheRoot(), building));
  try {
    await work(workspace);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

function announce(wanted: readonly Program[], onProgress: OnProgress): void {
  const built = componentPrograms.filter((name) => wanted.includes(name));
  if (built.length === 0) return;
  onProgress(
    `building ${built.join(', ')} from source into ${cacheRoot()}, once: all take about eight minutes on two cores`,
  );
  onProgress(
    `set DRAWBRIDGE_PROGRAMS or KUBEBUILDER_ASSETS to a folder that has them for Kubernetes 1.36 to skip this`,
  );
}

// Only the holder of the lock builds, so existing build folders are leftovers of killed builds.
async function removeAbandoned(): Promise<void> {
  const abandoned = (await readdir(cacheRoot())).filter((name) => name.startsWith(building));
  await Promise.all(abandoned.map((name) => rm(join(cacheRoot(), name), { recursive: true, force: true })));
}

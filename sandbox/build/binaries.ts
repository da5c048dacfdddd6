import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { clientOnPath, clientsAreStored, fetchClients, isExecutable } from './clients.ts';
import { buildGoProgram, goCacheKey, goVersion } from './go.ts';
import { withLock } from './lock.ts';
import { clientPrograms, goPrograms, type Program } from './programs.ts';
import { type OnProgress, reporting } from './progress.ts';

const building = '.building-';

/** Absolute paths of the programs of a plane. */
export type Binaries = Readonly<Record<Program, string>>;

/** Programs named by the environment variables of envtest; they override those of the sandbox. */
export function programsFromEnvironment(env: NodeJS.ProcessEnv): Partial<Binaries> {
  const folder = env['KUBEBUILDER_ASSETS'];
  const etcd = env['TEST_ASSET_ETCD'] ?? (folder ? join(folder, 'etcd') : undefined);
  const apiserver = env['TEST_ASSET_KUBE_APISERVER'] ?? (folder ? join(folder, 'kube-apiserver') : undefined);
  return { ...(etcd ? { etcd } : {}), ...(apiserver ? { 'kube-apiserver': apiserver } : {}) };
}

/**
 * Returns the path of every program. Uses the programs that the environment names, then the cache
 * (`${XDG_CACHE_HOME:-~/.cache}/drawbridge/sandbox/<key>/`), and builds missing ones, which takes about eight minutes the
 * first time. Calls `onProgress` only if it builds. Several processes may call this at once.
 */
export async function ensureBinaries(options: { readonly onProgress?: OnProgress } = {}): Promise<Binaries> {
  const given = programsFromEnvironment(process.env);
  const folder = join(cacheRoot(), await goCacheKey(await goVersion()));
  const cached = Object.fromEntries([...goPrograms, ...clientPrograms].map((name) => [name, join(folder, name)]));
  const binaries = { ...cached, ...(await clientsElsewhere()), ...given } as Binaries;
  if ((await missing(binaries)).length === 0) return binaries;
  const onProgress = options.onProgress ?? (() => undefined);
  await withLock(`${folder}.lock`, () => fill(folder, binaries, onProgress), {
    onWait: (pid) => onProgress(`process ${pid} is building the sandbox's programs, waiting for it`),
  });
  return binaries;
}

function cacheRoot(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'drawbridge', 'sandbox');
}

async function clientsElsewhere(): Promise<Partial<Binaries>> {
  if (clientsAreStored) return {};
  const [kubectl, helm] = await Promise.all([clientOnPath('kubectl'), clientOnPath('helm')]);
  return { kubectl, helm };
}

async function missing(binaries: Binaries): Promise<Program[]> {
  const names = Object.keys(binaries) as Program[];
  const present = await Promise.all(names.map((name) => isExecutable(binaries[name])));
  return names.filter((_, index) => !present[index]);
}

async function fill(folder: string, binaries: Binaries, onProgress: OnProgress): Promise<void> {
  // Checks again under the lock, because the previous holder may have built everything.
  const wanted = await missing(binaries);
  const foreign = wanted.find((name) => binaries[name] !== join(folder, name));
  if (foreign !== undefined)
    throw new Error(`there is no program at ${binaries[foreign]}, which the environment names`);
  await mkdir(folder, { recursive: true });
  await removeAbandoned(folder);
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

// Only the holder of the lock builds, so existing build folders are leftovers of killed builds.
async function removeAbandoned(folder: string): Promise<void> {
  const prefix = `${basename(folder)}${building}`;
  const abandoned = (await readdir(dirname(folder))).filter((name) => name.startsWith(prefix));
  await Promise.all(abandoned.map((name) => rm(join(dirname(folder), name), { recursive: true, force: true })));
}
